import { exec, spawn } from "node:child_process";
import { once } from "node:events";
import { access, constants } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { parseEnv, promisify } from "node:util";
import { expect } from "chai";
import { parse } from "yaml";
import { apiFlags, workerFlags } from "../../scripts/start/children.ts";
import { settings } from "../../src/config/config.ts";
import { listen } from "../../src/lib/listen.ts";
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

/** What Node is given to run a worker; the image's entry point has the flags of an API already. */
const workerCommand = [...workerFlags, "workers/main.ts"];

describe("the image", () => {
  it("has the Node that package.json pins, and runs existing files on ports that it opens", async () => {
    const dockerfile = await read("Dockerfile");
    const manifest = JSON.parse(await read("package.json"));
    const pinned = valueAt(manifest, "dependencies.node");
    expect(/^ARG NODE_VERSION=(.+)$/m.exec(dockerfile)?.[1]).to.equal(pinned);
    for (const [, image = ""] of dockerfile.matchAll(/^FROM (\S+)/gm))
      expect(image).to.match(/^node:\$\{NODE_VERSION\}-/);
    const ignored = (await read(".dockerignore")).split("\n");
    for (const [, path = ""] of dockerfile.matchAll(/^COPY (?!--from)(\S+) \.\/\S*$/gm)) {
      await exists(path);
      expect(ignored, `${path} does not reach the builder`).to.include(`!${path}`);
    }
    const [, entry = ""] = /^ENTRYPOINT (.*)$/m.exec(dockerfile) ?? [];
    expect(JSON.parse(entry)).to.deep.equal(["node", ...apiFlags]);
    for (const [script, command] of Object.entries({ api: [...apiFlags, "api/server.ts"], worker: workerCommand }))
      expect(valueAt(manifest, `scripts.${script}`)).to.equal(["node", ...command].join(" "));
    expect(dockerfile).to.match(/^CMD \["api\/server.ts"\]$/m);
    expect(dockerfile).to.match(/^USER node$/m);
    const env = Object.fromEntries([...dockerfile.matchAll(/(?:^ENV| {4})\s*(\w+)=(\S+)/gm)].map((m) => [m[1], m[2]]));
    expect([...settingNames, "NODE_ENV"]).to.include.members(Object.keys(env));
    expect(/^EXPOSE (.*)$/m.exec(dockerfile)?.[1]).to.equal(`${env.PORT} ${env.METRICS_PORT}`);
    expect(env.PORT).to.equal(String(defaultOf("PORT")));
    expect(dockerfile).to.contain(`org.opencontainers.image.version="${await readVersion()}"`);
  });

  it("is asked for its health by its own tools, and has as long to start as a pod has", async () => {
    const dockerfile = await read("Dockerfile");
    const [, seconds, command = ""] = /^HEALTHCHECK .*--start-period=(\d+)s CMD (.*)$/m.exec(dockerfile) ?? [];
    expect(Number(seconds)).to.be.at.least(START_SECONDS);
    const [program = "", ...args] = JSON.parse(command) as string[];
    expect(program, "Debian has it").to.equal("bash");
    let status = 200;
    const asked: (string | undefined)[] = [];
    const server = createServer((request, response) => {
      asked.push(request.url);
      response.writeHead(status).end();
    });
    server.unref(); // also when this fails
    const { port } = new URL(await listen(server, { host: "127.0.0.1", port: 0, setting: "PORT" }));
    const check = async () => {
      const child = spawn(program, args, { env: { PATH: process.env.PATH, METRICS_PORT: port }, stdio: "ignore" });
      return (await once(child, "exit"))[0];
    };
    expect(await check(), "200").to.equal(0);
    status = 503;
    expect(await check(), "503").to.equal(1);
    expect(asked).to.deep.equal(["/healthz", "/healthz"]);
    await once(server.close(), "close");
    expect(await check(), "nobody").to.equal(1);
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
    for (const [name, command] of Object.entries({
      api: ["api/server.ts"],
      worker: workerCommand.slice(apiFlags.length),
    })) {
      await exists(command.at(-1) ?? "");
      expect(valueAt(compose, `services.${name}.command`)).to.deep.equal(command);
      const env = Object.keys(valueAt(compose, `services.${name}.environment`) ?? {});
      expect([...settingNames, "GRAFANA_PASSWORD"], name).to.include.members(env);
      expect(env, name).to.include.members(["MONGODB_URL", "REDIS_URL", "MASTER_KEY"]);
      expect(valueAt(compose, `services.${name}.env_file`), "any setting").to.deep.equal(["${ENV_FILE:-.env}"]);
      expect(valueAt(compose, `services.${name}.environment`)).to.include({ HOST: "0.0.0.0", PORT: "3000" });
      const grace = String(valueAt(compose, `services.${name}.stop_grace_period`));
      expect(Number.parseInt(grace, 10) * 1_000).to.be.above(Number(defaultOf("SHUTDOWN_GRACE_MS")));
    }
    expect(valueAt(compose, "services.api.ports")).to.deep.equal(["127.0.0.1:${PORT:-3000}:3000"]);
    expect(valueAt(compose, "services.redis.command[2]")).to.match(/--appendonly yes .*--maxmemory-policy noeviction/);
  });

  it("bounds each part's logs, memory and processes, and names a version of each image", async () => {
    const compose = await readYaml("docker-compose.yml");
    const services = Object.entries(valueAt(compose, "services") as Record<string, unknown>);
    expect(services.map(([name]) => name)).to.include.members(["api", "worker", "redis", "mongodb", "caddy"]);
    for (const [name, service] of services) {
      expect(valueAt(service, "logging.options"), name).to.have.keys("max-size", "max-file");
      expect(valueAt(service, "mem_limit"), name).to.match(/^\d+[mg]$/);
      expect(valueAt(service, "pids_limit"), name).to.be.above(0);
      expect(valueAt(service, "image"), name).to.match(/:v?\d[\w.-]*$/);
      for (const mount of (valueAt(service, "tmpfs") ?? []) as string[]) expect(mount, name).to.contain(":size=");
    }
    expect(valueAt(compose, "services.api.image")).to.equal(`switchyard:${await readVersion()}`);
  });

  it("puts a proxy with TLS before the API that takes its largest file and its longest call, and holds no event back", async () => {
    const compose = await readYaml("docker-compose.yml");
    expect(valueAt(compose, "services.caddy.profiles")).to.deep.equal(["tls"]);
    const caddyfile = await read("deploy/caddy/Caddyfile");
    const [, mebibytes] = /max_size (\d+)MiB/.exec(caddyfile) ?? [];
    expect(Number(mebibytes) << 20).to.be.above(Number(defaultOf("MAX_SOURCE_BYTES")));
    const [, seconds] = /response_header_timeout (\d+)s/.exec(caddyfile) ?? [];
    expect(Number(seconds) * 1_000).to.be.above(Number(defaultOf("RUN_WAIT_MS")));
    expect(caddyfile).to.match(/reverse_proxy api:3000 \{\s+flush_interval -1/);
    const example = parseEnv(await read("deploy/compose.env.example"));
    expect(settings.TRUSTED_PROXIES.schema.parse(example.TRUSTED_PROXIES)).to.include("172.16.0.0/12");
  });

  it("gives each part a password of its own", async () => {
    const text = await read("docker-compose.yml");
    const compose = parse(text, { merge: true });
    const uses = (name: string) =>
      text.match(new RegExp(`^.*\\$\\{${name}\\b.*$`, "gm"))?.map((line) => line.trim()) ?? [];
    expect(uses("ADMIN_TOKEN"), "is the API's alone").to.deep.equal(["ADMIN_TOKEN: ${ADMIN_TOKEN:?set it in .env}"]);
    expect(valueAt(compose, "services.worker.environment")).to.include({ ADMIN_TOKEN: "", BOOTSTRAP_API_KEY: "" });
    expect(valueAt(compose, "services.grafana.environment.GF_SECURITY_ADMIN_PASSWORD")).to.contain("GRAFANA_PASSWORD");
    expect(valueAt(compose, "services.redis.environment.REDISCLI_AUTH")).to.equal("${REDIS_PASSWORD}");
    const commands = [...mappings(compose)].map(({ command }) => String(command));
    expect(commands.join(), "none on a command line, which others can read").not.to.match(/(?<!\$)\$\{?\w/);
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
    const composeOnly = ["MONGODB_PASSWORD", "REDIS_PASSWORD", "GRAFANA_PASSWORD", "DOMAIN"];
    expect([...settingNames, ...composeOnly]).to.include.members(named);
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
    for (const [, script = ""] of commands.join("\n").matchAll(/npm (?:run )?([\w:-]+)/g)) {
      expect(Object.keys(scripts ?? {})).to.include(script);
    }
    const versions = steps.flatMap((step) => step["node-version"] ?? []);
    expect(new Set(versions)).to.deep.equal(new Set([dependencies?.node]));
    const env = steps.flatMap((step) => Object.keys(step.env ?? {}));
    expect(settingNames).to.include.members(env);
  });

  it("makes a bill of materials of all locked packages", async function () {
    this.timeout(60_000);
    const workflow = await readYaml(".github/workflows/ci.yml");
    expect([...mappings(workflow)].map(({ run }) => run)).to.include("npm run sbom");
    const { scripts } = JSON.parse(await read("package.json")) as { scripts: Record<string, string> };
    const [command = ""] = (scripts.sbom ?? "").split(" > ");
    const { stdout } = await promisify(exec)(command, { cwd: root, maxBuffer: 64 << 20 });
    const made = JSON.parse(stdout) as { bomFormat: string; components: { name: string }[] };
    expect(made.bomFormat).to.equal("CycloneDX");
    const { dependencies } = JSON.parse(await read("package.json")) as { dependencies: Record<string, string> };
    expect(made.components.map(({ name }) => name)).to.include.members(Object.keys(dependencies));
  });
});
