import { access, constants, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { parse, parseAllDocuments } from "yaml";
import { allRoutes } from "../../api/all-routes.ts";
import { apiFlags, commonFlags, workerFlags } from "../../scripts/start/node-flags.ts";
import { settings } from "../../src/config.ts";
import { valueAt } from "../support/http-client.ts";
import { root } from "./source-files.ts";

const read = (path: string) => readFile(join(root, path), "utf8");
const readYaml = async (path: string): Promise<unknown> => parse(await read(path), { merge: true });
const exists = (path: string) => access(join(root, path));
const settingNames = Object.keys(settings);
const defaultOf = (name: keyof typeof settings) => settings[name].schema.parse(undefined);

/** Every mapping of a tree, however deep. */
function* mappings(value: unknown): Generator<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return;
  if (!Array.isArray(value)) yield value as Record<string, unknown>; // neither null nor a list: a mapping
  for (const inner of Object.values(value)) yield* mappings(inner);
}

describe("the image", () => {
  it("has the Node that package.json pins, and runs existing files on ports that it opens", async () => {
    const dockerfile = await read("Dockerfile");
    const pinned = valueAt(JSON.parse(await read("package.json")), "dependencies.node");
    expect(/^ARG NODE_VERSION=(.+)$/m.exec(dockerfile)?.[1]).to.equal(pinned);
    for (const [, image = ""] of dockerfile.matchAll(/^FROM (\S+)/gm))
      expect(image).to.match(/^node:\$\{NODE_VERSION\}-/);
    const ignored = (await read(".dockerignore")).split("\n");
    for (const [, path = ""] of dockerfile.matchAll(/^COPY (?!--from)(\S+) \.\/\S*$/gm)) {
      await exists(path);
      expect(ignored, `${path} does not reach the builder`).to.include(`!${path}`);
    }
    const [, command = ""] = /^CMD (.*)$/m.exec(dockerfile) ?? [];
    expect(JSON.parse(command)).to.deep.equal(["node", ...commonFlags, ...apiFlags, "api/server.ts"]);
    expect(dockerfile).to.match(/^USER node$/m);
    const env = Object.fromEntries([...dockerfile.matchAll(/(?:^ENV| {4})\s*(\w+)=(\S+)/gm)].map((m) => [m[1], m[2]]));
    expect([...settingNames, "NODE_ENV"]).to.include.members(Object.keys(env));
    expect(/^EXPOSE (.*)$/m.exec(dockerfile)?.[1]).to.equal(`${env.PORT} ${env.METRICS_PORT}`);
    expect(env.PORT).to.equal(String(defaultOf("PORT")));
  });
});

describe("the locked packages", () => {
  it("have a checksum each, and run the install scripts that package.json allows, and no others", async () => {
    type Locked = { integrity?: string; hasInstallScript?: true };
    const { packages } = JSON.parse(await read("package-lock.json")) as { packages: Record<string, Locked> };
    const { "": _root, ...locked } = packages;
    const unchecked = Object.entries(locked).filter(([, { integrity }]) => !integrity?.startsWith("sha512-"));
    expect(unchecked).to.deep.equal([]);
    const { allowScripts } = JSON.parse(await read("package.json")) as { allowScripts: object };
    const scripted = Object.keys(locked).filter((path) => locked[path]?.hasInstallScript);
    expect(scripted.map((path) => path.replace(/^.*node_modules\//, ""))).to.have.members(Object.keys(allowScripts));
    expect(await read("scripts/setup.mjs")).to.contain("--strict-allow-scripts");
    expect(await read("Dockerfile"), "none in the image").to.match(/^RUN npm install .*--ignore-scripts/m);
  });
});

describe("docker-compose.yml", () => {
  it("runs API and workers of the image with settings that exist, and lets them shut down cleanly", async () => {
    const compose = await readYaml("docker-compose.yml");
    const commands = { api: [...apiFlags, "api/server.ts"], worker: [...workerFlags, "workers/main.ts"] };
    for (const [name, command] of Object.entries(commands)) {
      await exists(String(command.at(-1)));
      expect(valueAt(compose, `services.${name}.command`)).to.deep.equal(["node", ...commonFlags, ...command]);
      const env = Object.keys(valueAt(compose, `services.${name}.environment`) ?? {});
      expect(settingNames, name).to.include.members(env);
      expect(env, name).to.include.members(["MONGODB_URL", "REDIS_URL", "MASTER_KEY"]);
      const grace = String(valueAt(compose, `services.${name}.stop_grace_period`));
      expect(Number.parseInt(grace, 10) * 1_000).to.be.above(Number(defaultOf("SHUTDOWN_GRACE_MS")));
    }
    expect(valueAt(compose, "services.redis.command")).to.include.members(["noeviction", "--appendonly"]);
  });

  it("gives each part a password of its own", async () => {
    const text = await read("docker-compose.yml");
    const compose = parse(text, { merge: true });
    const uses = (name: string) =>
      text.match(new RegExp(`^.*\\$\\{${name}\\b.*$`, "gm"))?.map((line) => line.trim()) ?? [];
    expect(uses("ADMIN_TOKEN"), "is the API's alone").to.deep.equal(["ADMIN_TOKEN: ${ADMIN_TOKEN:?set it in .env}"]);
    expect(valueAt(compose, "services.grafana.environment.GF_SECURITY_ADMIN_PASSWORD")).to.contain("GRAFANA_PASSWORD");
    expect((valueAt(compose, "services.redis.command") as string[]).slice(-2)).to.deep.equal([
      "--requirepass",
      "${REDIS_PASSWORD}",
    ]);
    for (const name of ["api", "worker"]) {
      expect(valueAt(compose, `services.${name}.environment.REDIS_URL`)).to.match(/^redis:\/\/:\$\{REDIS_PASSWORD:\?/);
      expect(valueAt(compose, `services.${name}.environment.MONGODB_URL`)).to.contain("${MONGODB_PASSWORD:?");
    }
  });

  it("mounts files that exist, and asks for nothing that the example of its settings does not name", async () => {
    const text = await read("docker-compose.yml");
    for (const [, path = ""] of text.matchAll(/- \.\/(\S+?):/g)) await exists(path);
    const named = [...(await read("deploy/compose.env.example")).matchAll(/^(\w+)=/gm)].map((match) => match[1]);
    const required = [...text.matchAll(/\$\{(\w+):\?/g)].map((match) => match[1]);
    expect(required).to.have.length.above(3);
    expect(named).to.include.members(required);
    const given = [...(await read(".github/workflows/ci.yml")).matchAll(/echo "(\w+)=/g)].map((match) => match[1]);
    expect(given, "CI").to.include.members(required);
  });
});

describe("the Kubernetes manifests", () => {
  let documents: unknown[];
  before(async () => {
    const files = valueAt(await readYaml("deploy/kubernetes/kustomization.yaml"), "resources") as string[];
    const there = (await readdir(join(root, "deploy/kubernetes"))).filter((file) => !/kustom|values/.test(file));
    expect(files).to.have.members(there);
    const texts = await Promise.all(files.map((file) => read(`deploy/kubernetes/${file}`)));
    documents = texts.flatMap((text) => parseAllDocuments(text)).map((each): unknown => each.toJS());
  });

  const ofKind = (kind: string) => documents.filter((each) => valueAt(each, "kind") === kind);
  const nameOf = (document: unknown) => String(valueAt(document, "metadata.name"));
  const container = (document: unknown) => valueAt(document, "spec.template.spec.containers[0]");

  it("run the files of the image, unprivileged, with settings that exist", async () => {
    expect(ofKind("Deployment").map(nameOf)).to.have.members(["switchyard-api", "switchyard-worker"]);
    for (const deployment of ofKind("Deployment")) {
      const command = valueAt(container(deployment), "command") as string[];
      expect(command.slice(0, 2)).to.deep.equal(["node", ...commonFlags]);
      await exists(String(command.at(-1)));
      expect(valueAt(container(deployment), "securityContext.readOnlyRootFilesystem")).to.equal(true);
      expect(valueAt(deployment, "spec.template.spec.securityContext.runAsNonRoot")).to.equal(true);
    }
    const config = ofKind("ConfigMap")[0];
    expect(settingNames).to.include.members(Object.keys(valueAt(config, "data") ?? {}));
  });

  it("probe paths that answer without a key, on ports that the container has", () => {
    const ports = { http: [] as string[], metrics: ["/metrics", "/healthz", "/readyz"] };
    ports.http = allRoutes.filter((route) => route.auth === "public").map((route) => route.path);
    for (const deployment of ofKind("Deployment")) {
      const opened = valueAt(container(deployment), "ports") as { name: string; containerPort: number }[];
      for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"]) {
        const where = `${nameOf(deployment)} ${probe}`;
        const port = String(valueAt(container(deployment), `${probe}.httpGet.port`));
        expect(port, where).to.be.oneOf(opened.map(({ name }) => name));
        const paths = port === "http" ? ports.http : ports.metrics;
        expect(paths, where).to.include(valueAt(container(deployment), `${probe}.httpGet.path`));
      }
    }
  });

  it("give running work longer to end than the process takes for itself", () => {
    const grace = Number(valueAt(ofKind("ConfigMap")[0], "data.SHUTDOWN_GRACE_MS"));
    for (const deployment of ofKind("Deployment")) {
      const preStop = valueAt(container(deployment), "lifecycle.preStop.exec.command[1]") ?? 0;
      const total = Number(valueAt(deployment, "spec.template.spec.terminationGracePeriodSeconds"));
      expect(total * 1_000, nameOf(deployment)).to.be.above(Number(preStop) * 1_000 + grace);
    }
  });

  it("select existing pods, and scale existing deployments", () => {
    for (const deployment of ofKind("Deployment")) {
      const labels = valueAt(deployment, "spec.template.metadata.labels");
      expect(valueAt(deployment, "spec.selector.matchLabels")).to.deep.equal(labels);
      const budget = ofKind("PodDisruptionBudget").find((each) => nameOf(each) === nameOf(deployment));
      expect(valueAt(budget, "spec.selector.matchLabels"), nameOf(deployment)).to.deep.equal(labels);
    }
    const targets = ofKind("HorizontalPodAutoscaler").map((each) => valueAt(each, "spec.scaleTargetRef.name"));
    expect(targets).to.have.members(ofKind("Deployment").map(nameOf));
  });

  it("open the API's port to all, and the metrics' port to one namespace", () => {
    const [policy, ...others] = ofKind("NetworkPolicy");
    expect(others).to.deep.equal([]);
    const selected = valueAt(policy, "spec.podSelector.matchLabels") as object;
    for (const deployment of ofKind("Deployment"))
      expect(valueAt(deployment, "spec.template.metadata.labels")).to.include(selected);
    const rules = valueAt(policy, "spec.ingress") as unknown[];
    const openTo = (port: string) => rules.filter((rule) => valueAt(rule, "ports[0].port") === port);
    expect(rules).to.have.length(2);
    expect(openTo("http")).to.deep.equal([{ ports: [{ port: "http" }] }]);
    expect(valueAt(openTo("metrics")[0], "from[0].namespaceSelector.matchLabels")).to.be.an("object").and.not.be.empty;
    expect(valueAt(openTo("metrics")[0], "ports")).to.have.length(1);
  });

  it("scale workers by a metric that the adapter's configuration makes", async () => {
    const scalers = ofKind("HorizontalPodAutoscaler").flatMap((each) => [...mappings(each)]);
    const wanted = scalers.flatMap(({ external }) => valueAt(external, "metric.name") ?? []);
    const rules = valueAt(await readYaml("deploy/kubernetes/prometheus-adapter-values.yaml"), "rules.external");
    expect(wanted).to.deep.equal([valueAt(rules, "[0].name.as")]);
  });
});

describe("the workflow of CI", () => {
  it("runs commands that exist, on the pinned Node", async () => {
    const workflow = await readYaml(".github/workflows/ci.yml");
    const { scripts, dependencies } = JSON.parse(await read("package.json")) as Record<string, Record<string, string>>;
    const steps = [...mappings(workflow)];
    const commands = steps.flatMap(({ run }) => (typeof run === "string" ? [run] : []));
    expect(commands).to.include.members([".ci/run", "npm test"]);
    await access(join(root, ".ci/run"), constants.X_OK);
    for (const [, script = ""] of commands.join("\n").matchAll(/npm (?:run )?(\w+)/g)) {
      expect(Object.keys(scripts ?? {})).to.include(script);
    }
    const versions = steps.flatMap((step) => step["node-version"] ?? []);
    expect(new Set(versions)).to.deep.equal(new Set([dependencies?.node]));
    const env = steps.flatMap((step) => Object.keys(step.env ?? {}));
    expect(settingNames).to.include.members(env);
  });
});
