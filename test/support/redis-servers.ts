import { type ChildProcess, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { Redis } from "ioredis";
import type { Disposables } from "../../src/lib/disposables.ts";
import { pollUntil } from "./poll-until.ts";
import type { RedisTls } from "./redis-tls.ts";

export type RedisServer = {
  port: number;
  /** Where it speaks TLS, if it does. */
  tlsPort: number;
  /** The raw answer to a command. */
  ask(name: string, ...args: (string | number)[]): Promise<unknown>;
  /** Ends it at once. */
  kill(): Promise<void>;
};

const FREE_PORT_ATTEMPTS = 20;

/** Starts a redis-server on a free port of this machine, with these lines of settings; it ends with `disposables`. */
export async function startRedis(
  disposables: Disposables,
  settings: readonly string[] = [],
  { isSentinel = false, tls }: { isSentinel?: boolean; tls?: RedisTls | undefined } = {},
): Promise<RedisServer> {
  const dir = await mkdtemp(join(tmpdir(), "switchyard-redis-"));
  disposables.add(() => rm(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 }));
  const [port, busPort, tlsPort] = [await freePort(), await freePort(), await freePort()];
  const isCluster = settings.includes("cluster-enabled yes");
  const lines = [
    `port ${port}`,
    "bind 127.0.0.1",
    `dir ${dir}`,
    `logfile ${join(dir, "log")}`,
    'save ""',
    ...(isSentinel ? [] : ["repl-diskless-sync-delay 0", "maxmemory-policy noeviction"]),
    ...(tls ? [`tls-port ${tlsPort}`, ...tls.settings] : []),
    ...(isCluster ? [`cluster-port ${busPort}`, "cluster-node-timeout 1500"] : []),
    ...(isCluster && tls ? ["tls-cluster yes"] : []),
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
  return { port, tlsPort, ask, kill: () => kill(child) };
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
}

/** Ports that were given to servers of this process: one of a cluster is free until its server listens. */
const givenPorts = new Set<number>();

/** A port outside of those that systems give to connections: one of these could be taken before the server listens. */
async function freePort(): Promise<number> {
  for (let attempt = 1; ; attempt += 1) {
    const wanted = randomInt(10_000, 32_000);
    if (givenPorts.has(wanted)) continue;
    givenPorts.add(wanted);
    const server = createServer();
    server.listen(wanted, "127.0.0.1");
    try {
      await once(server, "listening");
    } catch (error) {
      if (attempt === FREE_PORT_ATTEMPTS) throw error;
      continue;
    }
    const { port } = server.address() as AddressInfo; // of a TCP server that listens
    server.close();
    await once(server, "close");
    return port;
  }
}

/** Two servers, the second a replica of the first. */
export async function startReplicated(disposables: Disposables, tls?: RedisTls) {
  const start = () => startRedis(disposables, [], { tls });
  const [first, second] = [await start(), await start()];
  await follow(second, { port: tls ? first.tlsPort : first.port });
  return [first, second] as const;
}

/** Makes `replica` follow `primary`, and waits until it has all that the primary has. */
async function follow(replica: RedisServer, primary: { port: number }): Promise<void> {
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
export async function startSentinel(disposables: Disposables, tls?: RedisTls) {
  const [primary, replica] = await startReplicated(disposables, tls);
  const watch = `sentinel monitor primary 127.0.0.1 ${tls ? primary.tlsPort : primary.port} 1`;
  const times = ["sentinel down-after-milliseconds primary 1000", "sentinel failover-timeout primary 5000"];
  const sentinel = await startRedis(disposables, [watch, ...times], { isSentinel: true, tls });
  await pollUntil(async () => ((await sentinel.ask("SENTINEL", "REPLICAS", "primary")) as unknown[]).length === 1, {
    timeoutMs: 30_000,
    what: "the Sentinel's knowledge of the replica",
  });
  const url = `redis${tls ? "s" : ""}+sentinel://127.0.0.1:${tls ? sentinel.tlsPort : sentinel.port}/primary`;
  return { primary, replica, sentinel, url };
}

/** Three primaries that share all slots, and a replica of each. */
export async function startCluster(disposables: Disposables, tls?: RedisTls) {
  const settings = ["cluster-enabled yes"];
  const portOf = (server: RedisServer) => (tls ? server.tlsPort : server.port);
  const servers = await Promise.all(Array.from({ length: 6 }, () => startRedis(disposables, settings, { tls })));
  const [first, ...others] = servers;
  if (first === undefined) throw new TypeError("there are six");
  for (const [index, server] of servers.entries()) await server.ask("CLUSTER", "SET-CONFIG-EPOCH", index + 1);
  const primaries = servers.slice(0, 3);
  const share = Math.ceil(16_384 / primaries.length);
  for (const [index, server] of primaries.entries())
    await server.ask("CLUSTER", "ADDSLOTSRANGE", index * share, Math.min((index + 1) * share, 16_384) - 1);
  for (const server of others) {
    const bus = await server.ask("CONFIG", "GET", "cluster-port");
    await first.ask("CLUSTER", "MEET", "127.0.0.1", portOf(server), String((bus as string[])[1]));
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
  const hosts = primaries.map((server) => `127.0.0.1:${portOf(server)}`).join(",");
  const slotOf = async (key: string) => Number(await first.ask("CLUSTER", "KEYSLOT", key));
  const moved = new Map<number, RedisServer>();
  const ownerOf = async (key: string): Promise<RedisServer> => {
    const slot = await slotOf(key);
    const owner = moved.get(slot) ?? primaries[Math.floor(slot / share)];
    if (owner === undefined) throw new TypeError("every slot has an owner");
    return owner;
  };
  return {
    url: `redis${tls ? "s" : ""}://${hosts}`,
    /** The server that has the slot of a key. */
    ownerOf,
    /**
     * Moves the slot of a key, and all that is in it, to another server, as a cluster that is given more servers does.
     * `meanwhile` is waited for when some of its keys have moved: both servers ask clients to look at the other one then.
     */
    async moveSlot(key: string, meanwhile: () => Promise<unknown> = async () => undefined): Promise<void> {
      const [slot, from] = [await slotOf(key), await ownerOf(key)];
      const to = primaries.find((server) => server !== from) ?? first;
      const [fromId, toId] = [String(await from.ask("CLUSTER", "MYID")), String(await to.ask("CLUSTER", "MYID"))];
      await to.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", fromId);
      await from.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", toId);
      for (let isFirst = true; ; isFirst = false) {
        const keys = (await from.ask("CLUSTER", "GETKEYSINSLOT", slot, 10)) as string[];
        if (keys.length === 0) break;
        await from.ask("MIGRATE", "127.0.0.1", portOf(to), "", 0, 5_000, "KEYS", ...keys);
        if (isFirst) await meanwhile();
      }
      for (const server of [to, from, ...primaries.filter((one) => one !== to && one !== from)])
        await server.ask("CLUSTER", "SETSLOT", slot, "NODE", toId);
      moved.set(slot, to);
    },
  };
}
