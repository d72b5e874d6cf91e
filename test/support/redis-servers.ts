import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { Redis } from "ioredis";
import type { Disposables } from "../../src/disposables.ts";
import { pollUntil } from "./poll-until.ts";

export type RedisServer = {
  port: number;
  /** The raw answer to a command. */
  ask(name: string, ...args: (string | number)[]): Promise<unknown>;
  /** Ends it at once. */
  kill(): Promise<void>;
};

/** Starts a redis-server on a free port of this machine, with these lines of settings; it ends with `disposables`. */
export async function startRedis(
  disposables: Disposables,
  settings: readonly string[] = [],
  { isSentinel = false, isTls = false } = {},
): Promise<RedisServer & { tlsPort: number }> {
  const dir = await mkdtemp(join(tmpdir(), "switchyard-redis-"));
  disposables.add(() => rm(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 }));
  const [port, busPort] = [await freePort(), await freePort()];
  const isCluster = settings.includes("cluster-enabled yes");
  const lines = [
    `port ${port}`,
    "bind 127.0.0.1",
    `dir ${dir}`,
    `logfile ${join(dir, "log")}`,
    'save ""',
    ...(isSentinel ? [] : ["repl-diskless-sync-delay 0", "maxmemory-policy noeviction"]),
    ...(isTls ? [`tls-port ${busPort}`] : []),
    ...(isCluster ? [`cluster-port ${busPort}`, "cluster-node-timeout 1500"] : []),
    ...settings,
  ];
  const file = join(dir, "redis.conf");
  await writeFile(file, `${lines.filter((line) => !(isSentinel && line.startsWith("save"))).join("\n")}\n`);
  const PATH = [process.env.PATH, join(process.cwd(), "node_modules/.bin")].join(delimiter);
  const child = spawn("redis-server", [file, ...(isSentinel ? ["--sentinel"] : [])], {
    stdio: "ignore",
    env: { ...process.env, PATH },
  });
  disposables.add(() => kill(child));
  const client = new Redis({
    host: "127.0.0.1",
    port,
    retryStrategy: (attempt) => Math.min(attempt * 20, 200),
    maxRetriesPerRequest: null,
    commandTimeout: 5_000,
  });
  client.on("error", () => undefined); // it is starting, or was ended
  disposables.add(() => client.disconnect());
  const ask = (name: string, ...args: (string | number)[]): Promise<unknown> => client.call(name, ...args);
  await pollUntil(() => client.status === "ready", { what: `redis-server on ${port}` });
  return { port, tlsPort: busPort, ask, kill: () => kill(child) };
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
}

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // of a TCP server that listens
  server.close();
  await once(server, "close");
  return port;
}

/** Two servers, the second a replica of the first. */
export async function startReplicated(disposables: Disposables) {
  const [first, second] = [await startRedis(disposables), await startRedis(disposables)];
  await follow(second, first);
  return [first, second] as const;
}

/** Makes `replica` follow `primary`, and waits until it has all that the primary has. */
async function follow(replica: RedisServer, primary: RedisServer): Promise<void> {
  await replica.ask("REPLICAOF", "127.0.0.1", primary.port);
  await pollUntil(async () => /master_link_status:up/.test(String(await replica.ask("INFO", "replication"))), {
    what: "the replica",
  });
}

/** Swaps the roles of two servers, as a managed Redis does: the old primary lives on as a replica. */
export async function swapRoles(primary: RedisServer, replica: RedisServer): Promise<void> {
  await replica.ask("REPLICAOF", "NO", "ONE");
  await primary.ask("REPLICAOF", "127.0.0.1", replica.port);
}

/** A primary with a replica, watched by a Sentinel under the name `primary`. */
export async function startSentinel(disposables: Disposables) {
  const [primary, replica] = await startReplicated(disposables);
  const watch = ["sentinel monitor primary 127.0.0.1", String(primary.port), "1"].join(" ");
  const times = ["sentinel down-after-milliseconds primary 1000", "sentinel failover-timeout primary 5000"];
  const sentinel = await startRedis(disposables, [watch, ...times], { isSentinel: true });
  await pollUntil(async () => ((await sentinel.ask("SENTINEL", "REPLICAS", "primary")) as unknown[]).length === 1, {
    timeoutMs: 30_000,
    what: "the Sentinel's knowledge of the replica",
  });
  return { primary, replica, sentinel, url: `redis+sentinel://127.0.0.1:${sentinel.port}/primary` };
}

/** Three primaries that share all slots, and a replica of each. */
export async function startCluster(disposables: Disposables) {
  const settings = ["cluster-enabled yes"];
  const servers = await Promise.all(Array.from({ length: 6 }, () => startRedis(disposables, settings)));
  const [first, ...others] = servers;
  if (first === undefined) throw new TypeError("there are six");
  for (const [index, server] of servers.entries()) await server.ask("CLUSTER", "SET-CONFIG-EPOCH", index + 1);
  const primaries = servers.slice(0, 3);
  const share = Math.ceil(16_384 / primaries.length);
  for (const [index, server] of primaries.entries())
    await server.ask("CLUSTER", "ADDSLOTSRANGE", index * share, Math.min((index + 1) * share, 16_384) - 1);
  for (const server of others) {
    const bus = await server.ask("CONFIG", "GET", "cluster-port");
    await first.ask("CLUSTER", "MEET", "127.0.0.1", server.port, String((bus as string[])[1]));
  }
  const knowsAll = async (server: RedisServer) =>
    /cluster_known_nodes:6/.test(String(await server.ask("CLUSTER", "INFO")));
  await pollUntil(async () => (await Promise.all(servers.map(knowsAll))).every(Boolean), { what: "the cluster" });
  for (const [index, primary] of primaries.entries()) {
    const id = String(await primary.ask("CLUSTER", "MYID"));
    await pollUntil(() => servers[index + 3]?.ask("CLUSTER", "REPLICATE", id).catch(() => null), { what: "a replica" });
  }
  const isComplete = async (server: RedisServer) => {
    const isUp = /cluster_state:ok/.test(String(await server.ask("CLUSTER", "INFO")));
    const info = String(await server.ask("INFO", "replication"));
    return isUp && (/role:master/.test(info) ? /connected_slaves:1/ : /master_link_status:up/).test(info);
  };
  await pollUntil(async () => (await Promise.all(servers.map(isComplete))).every(Boolean), {
    timeoutMs: 30_000,
    what: "the complete cluster",
  });
  const hosts = primaries.map(({ port }) => `127.0.0.1:${port}`).join(",");
  return {
    url: `redis://${hosts}`,
    /** The server that has the slot of a key. */
    async ownerOf(key: string): Promise<RedisServer> {
      const slot = Number(await first.ask("CLUSTER", "KEYSLOT", key));
      const owner = primaries[Math.floor(slot / share)];
      if (owner === undefined) throw new TypeError("every slot has an owner");
      return owner;
    },
  };
}
