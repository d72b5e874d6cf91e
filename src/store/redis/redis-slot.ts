import { connect as connectTcp } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { AbstractConnector, Redis, type RedisOptions } from "ioredis";
import { z } from "zod";
import type { RedisHost } from "./redis-url.ts";

/** Longest pause between two rounds over the servers of a cluster, in ms. */
const MAX_PAUSE_MS = 1_000;
/** Servers of a cluster that are remembered. */
const MAX_KNOWN = 100;

const serverSchema = z.tuple([z.string().nullable(), z.number()]).rest(z.unknown());
/** `CLUSTER SLOTS`: ranges, each with its primary and its replicas. */
const slotsSchema = z.array(z.tuple([z.number(), z.number()]).rest(serverSchema));

type Login = Pick<RedisOptions, "username" | "password" | "tls" | "connectTimeout" | "commandTimeout">;

/**
 * Connections to the server of a cluster that has the slot of a key, as if it were the only one: all keys are in this slot. The
 * servers are asked for it at each connection, so one that is made again after a failover leads to the new primary.
 */
export function connectorOfSlot({ hosts, key, login }: { hosts: readonly RedisHost[]; key: string; login: Login }) {
  let known = [...hosts];
  const find = async (server: RedisHost): Promise<RedisHost> => {
    const client = new Redis({
      ...login,
      ...server,
      lazyConnect: true,
      retryStrategy: () => null,
      enableReadyCheck: false,
    });
    client.on("error", () => undefined); // the call that meets it throws it too
    try {
      await client.connect();
      const slot = z.number().parse(await client.call("CLUSTER", "KEYSLOT", key));
      const ranges = slotsSchema.parse(await client.call("CLUSTER", "SLOTS"));
      const servers = ranges.map(([from, to, ...all]) => ({
        isOurs: from <= slot && slot <= to,
        all: all.map(([host, port]) => ({ host: host || server.host, port })), // without a name it is the one that was asked
      }));
      const others = servers.flatMap(({ all }) => all).filter((one) => !hosts.some((given) => isSame(one, given)));
      known = [...hosts, ...others].slice(0, MAX_KNOWN);
      const owner = servers.find(({ isOurs }) => isOurs)?.all[0];
      if (owner === undefined) throw new Error(`no server of the cluster has the slot ${slot}`);
      return owner;
    } finally {
      client.disconnect();
    }
  };
  return class SlotConnector extends AbstractConnector {
    constructor(options: unknown) {
      super(z.object({ disconnectTimeout: z.number() }).parse(options).disconnectTimeout);
    }

    override check({ role }: { role?: string }): boolean {
      return role === undefined || role === "master";
    }

    override async connect(report: (type: string, error: Error) => void) {
      this.connecting = true;
      for (let round = 0; this.connecting; round += 1) {
        for (const server of known) {
          const owner = await find(server).catch((error: Error) => report("error", error));
          if (!this.connecting) break;
          if (!owner) continue;
          this.stream = login.tls ? connectTls({ ...owner, ...login.tls }) : connectTcp(owner);
          this.stream.once("error", (error) => {
            this.firstError = error;
          });
          return this.stream;
        }
        await delay(Math.min(round * 50, MAX_PAUSE_MS), undefined, { ref: false });
      }
      throw new Error("Connection is closed.");
    }
  };
}

const isSame = (a: RedisHost, b: RedisHost) => a.host === b.host && a.port === b.port;
