import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { Command } from "commander";
import { type Disposables, withDisposables } from "../../src/lib/disposables.ts";
import { startCluster, startRedis, startReplicated, startSentinel, swapRoles } from "../support/redis-servers.ts";
import { makeRedisTls } from "../support/redis-tls.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";

/** What touches Redis or a store most. */
const usual = [
  "test/dialect/*.test.ts",
  "test/workers/*job*.test.ts",
  "test/http/{rag,jobs,agents,workflows,limits,cache,readiness}.test.ts",
];
/** How long after the start of the tests a failover comes, in ms. */
const FAILOVER_AFTER_MS = 15_000;

type Engine = { env: Record<string, string>; failOver?: () => Promise<void> };

/** The kinds of Redis, each of Debian's redis-server; what fails over does so in the middle of the tests. */
const engines: Record<string, (disposables: Disposables) => Promise<Engine>> = {
  async plain(disposables) {
    const { port } = await startRedis(disposables);
    return { env: { REDIS_URL: `redis://127.0.0.1:${port}` } };
  },
  async tls(disposables) {
    const tls = await makeRedisTls(disposables);
    const { tlsPort } = await startRedis(disposables, [], { tls });
    return { env: { REDIS_URL: `rediss://localhost:${tlsPort}`, NODE_EXTRA_CA_CERTS: tls.certificate } };
  },
  async failover(disposables) {
    const [primary, replica] = await startReplicated(disposables);
    const proxy = await startTcpProxy(primary.port);
    disposables.add(() => proxy.close());
    const failOver = async () => {
      await swapRoles(primary, replica);
      proxy.leadTo(replica.port);
    };
    return { env: { REDIS_URL: `redis://127.0.0.1:${proxy.port}` }, failOver };
  },
  async cluster(disposables) {
    const { url } = await startCluster(disposables);
    return { env: { REDIS_URL: url, REDIS_CLUSTER: "true" } };
  },
  async sentinel(disposables) {
    const { url, sentinel } = await startSentinel(disposables);
    return {
      env: { REDIS_URL: url },
      failOver: async () => void (await sentinel.ask("SENTINEL", "FAILOVER", "primary")),
    };
  },
};

/** `npm run engines-check`: tests of the suite against other engines. Exit code 0: all have passed. 1: some have not. */
const program = new Command("engines-check")
  .description("Runs tests of the suite against Debian's Redis of each kind, and MONGODB_URL if it is set")
  .argument("[files...]", "test files, as globs", usual)
  .option("--only <engines...>", `of ${Object.keys(engines).join(", ")}`, Object.keys(engines))
  .parse();

const failed: string[] = [];
for (const name of program.opts<{ only: string[] }>().only) {
  const start = engines[name];
  if (!start) failed.push(`${name}, which is none`);
  console.log(`\n== ${name}${process.env.MONGODB_URL ? ", and the store of MONGODB_URL" : ""}`);
  if (!start) continue;
  const code = await withDisposables(async (disposables) => {
    const { env, failOver } = await start(disposables);
    const child = spawn("mocha", program.args.length > 0 ? program.args : usual, {
      stdio: "inherit",
      env: { ...process.env, ...env, PATH: `${join(process.cwd(), "node_modules/.bin")}:${process.env.PATH}` },
    });
    const timer = setTimeout(() => void failOver?.().then(() => console.log("(failed over)")), FAILOVER_AFTER_MS);
    const [exit] = await once(child, "exit");
    clearTimeout(timer);
    await disposables.close();
    return exit;
  });
  if (code !== 0) failed.push(name);
}
console.log(failed.length === 0 ? "\nevery engine passed" : `\nfailed: ${failed.join(", ")}`);
process.exit(failed.length === 0 ? 0 : 1);
