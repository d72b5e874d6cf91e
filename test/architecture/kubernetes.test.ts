import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { expect } from "chai";
import { parseAllDocuments } from "yaml";
import { allRoutes } from "../../api/all-routes.ts";
import { loadConfig } from "../../src/config/config.ts";
import { valueAt } from "../support/http-client.ts";
import {
  defaultOf,
  exists,
  mappings,
  read,
  readVersion,
  readYaml,
  START_SECONDS,
  settingNames,
} from "./deployment-files.ts";
import { root } from "./source-files.ts";

describe("the Kubernetes manifests", () => {
  let documents: unknown[];
  let config: NodeJS.Dict<string>;
  before(async () => {
    const files = valueAt(await readYaml("deploy/kubernetes/kustomization.yaml"), "resources") as string[];
    const there = (await readdir(join(root, "deploy/kubernetes"))).filter(
      (file) => !/kustom|values|keda|env$/.test(file),
    );
    expect(files).to.have.members(there);
    const texts = await Promise.all(files.map((file) => read(`deploy/kubernetes/${file}`)));
    documents = texts.flatMap((text) => parseAllDocuments(text)).map((each): unknown => each.toJS());
    config = parseEnv(await read("deploy/kubernetes/config.env"));
  });

  const ofKind = (kind: string) => documents.filter((each) => valueAt(each, "kind") === kind);
  const nameOf = (document: unknown) => String(valueAt(document, "metadata.name"));
  const container = (document: unknown) => valueAt(document, "spec.template.spec.containers[0]");

  it("run the files of the image, unprivileged, with settings that exist", async () => {
    expect(ofKind("Deployment").map(nameOf)).to.have.members(["switchyard-api", "switchyard-worker"]);
    for (const deployment of ofKind("Deployment")) {
      const args = valueAt(container(deployment), "args") as string[];
      await exists(String(args.at(-1)));
      expect(valueAt(container(deployment), "securityContext.readOnlyRootFilesystem")).to.equal(true);
      expect(valueAt(deployment, "spec.template.spec.securityContext.runAsNonRoot")).to.equal(true);
    }
    for (const [name, value] of Object.entries(config))
      expect(() => loadConfig({ [name]: value }), name).not.to.throw();
    expect(settingNames).to.include.members(Object.keys(config));
  });

  it("replace pods when a setting changes, and name the version of the image", async () => {
    const kustomization = await readYaml("deploy/kubernetes/kustomization.yaml");
    expect(valueAt(kustomization, "configMapGenerator")).to.deep.equal([{ name: "switchyard", envs: ["config.env"] }]);
    expect(ofKind("ConfigMap"), "one whose name has no hash").to.deep.equal([]);
    expect(valueAt(kustomization, "images[0].newTag")).to.equal(await readVersion());
  });

  it("give a start the time that waiting for the store takes", () => {
    for (const deployment of ofKind("Deployment")) {
      const probe = valueAt(container(deployment), "startupProbe");
      const seconds = Number(valueAt(probe, "periodSeconds")) * Number(valueAt(probe, "failureThreshold"));
      expect(seconds, nameOf(deployment)).to.be.at.least(START_SECONDS);
      expect(valueAt(deployment, "spec.progressDeadlineSeconds"), nameOf(deployment)).to.be.above(seconds);
    }
  });

  it("let in the API's largest file and its longest call, and hold no event back", () => {
    const [ingress, ...others] = ofKind("Ingress");
    expect(others).to.deep.equal([]);
    const annotations = Object.entries(valueAt(ingress, "metadata.annotations") as Record<string, string>);
    const nginx = Object.fromEntries(annotations.map(([name, value]) => [name.split("/")[1], value]));
    expect(Number.parseInt(nginx["proxy-body-size"] ?? "", 10) << 20).to.be.above(
      Number(defaultOf("MAX_SOURCE_BYTES")),
    );
    for (const name of ["proxy-read-timeout", "proxy-send-timeout"])
      expect(Number(nginx[name]) * 1_000, name).to.be.above(Number(defaultOf("RUN_WAIT_MS")));
    expect(nginx).to.include({ "proxy-buffering": "off", "proxy-request-buffering": "off" });
    const backend = valueAt(ingress, "spec.rules[0].http.paths[0].backend.service");
    const service = ofKind("Service").find((each) => nameOf(each) === valueAt(backend, "name"));
    expect(valueAt(service, "spec.ports[0].name")).to.equal(valueAt(backend, "port.name"));
    const host = String(valueAt(ingress, "spec.rules[0].host"));
    expect(valueAt(ingress, "spec.tls[0].hosts")).to.deep.equal([host]);
    expect(config).to.include({ PUBLIC_URL: `https://${host}`, ALLOWED_HOSTS: host });
    expect(config.TRUSTED_PROXIES, "the client's address").to.be.a("string");
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
    for (const deployment of ofKind("Deployment")) {
      const own = [...mappings(valueAt(container(deployment), "env"))].find(({ name }) => name === "SHUTDOWN_GRACE_MS");
      const grace = Number(own?.value ?? config.SHUTDOWN_GRACE_MS);
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

  it("scale workers by what waits and runs against their places, by the adapter and by KEDA alike, and slowly down", async () => {
    const scalers = ofKind("HorizontalPodAutoscaler").flatMap((each) => [...mappings(each)]);
    const wanted = scalers.flatMap(({ external }) => valueAt(external, "metric.name") ?? []);
    const rules = valueAt(await readYaml("deploy/kubernetes/prometheus-adapter-values.yaml"), "rules.external");
    expect(wanted).to.deep.equal([valueAt(rules, "[0].name.as")]);
    const query = String(valueAt(rules, "[0].metricsQuery"));
    expect(query).to.contain('state=~"waiting|active"').and.contain("switchyard_queue_places_per_worker");
    const keda = await readYaml("deploy/kubernetes/keda.yaml");
    expect(valueAt(keda, "spec.triggers[0].metadata.query")).to.equal(query);
    const scaler = ofKind("HorizontalPodAutoscaler").find((each) => nameOf(each) === nameOf(keda));
    expect(valueAt(keda, "spec.scaleTargetRef.name")).to.equal(valueAt(scaler, "spec.scaleTargetRef.name"));
    const down = valueAt(scaler, "spec.behavior.scaleDown");
    expect(valueAt(keda, "spec.advanced.horizontalPodAutoscalerConfig.behavior.scaleDown")).to.deep.equal(down);
    expect(valueAt(down, "stabilizationWindowSeconds")).to.be.at.least(600);
    expect(valueAt(down, "policies")).to.deep.equal([{ type: "Pods", value: 1, periodSeconds: 120 }]);
  });
});
