import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { loadConfig } from "../../../src/config/config.ts";
import { ensureServices } from "../../../src/embedded/ensure.ts";
import type { Disposables } from "../../../src/lib/disposables.ts";
import { makeLogger } from "../../../src/observe/logger.ts";
import { openPlatform } from "../../../src/platform.ts";
import { type Fleet, startFleet } from "../chaos/fleet.ts";
import { makeFreezer } from "../chaos/freezer.ts";
import { CACHE_BYTES_PER_TENANT, type Client, DESCRIPTORS, idOf, makeClient } from "./attack.ts";

/** A platform as processes of its own, with the keys of victims, of a page of the first one's, and of an attacker. */
export type Stack = { fleet: Fleet; url: string; keys: Keys; victims: Victim[] };
export type Victim = { apiKey: string; workflowId: string };
export type Keys = { victims: string[]; widget: string; member: string; owner: string };

/** Several, so that there are enough calls for a percentile although each stays below its rate limit. */
const VICTIMS = ["acme", "birch", "cedar"];

/** Documents that each victim has loaded and removed before anything is measured, and the size of each, in characters. */
const EARLIER_DOCUMENTS = 15;
const EARLIER_CHARACTERS = 150_000;

/**
 * Starts one API and some workers on an embedded store and a Redis of their own; data and logs go into `folder`. They may call
 * the origins of `outsides`.
 */
export async function openStack(
  options: { folder: string; workers: number; outsides: readonly string[] },
  disposables: Disposables,
): Promise<Stack> {
  const dataDir = join(options.folder, "data");
  const logDir = join(options.folder, "logs");
  await mkdir(logDir, { recursive: true });
  const logger = makeLogger({ level: "silent", name: "siege" });
  const services = await ensureServices({ dataDir, mongo: true, redis: true, logger });
  disposables.add(() => services.close());
  const env = {
    DATA_DIR: dataDir,
    MONGODB_URL: services.mongoUrl ?? "",
    REDIS_URL: services.redisUrl ?? "",
    PORT: "0",
    FETCH_ALLOW_ORIGINS: options.outsides.join(","),
    CACHE_BYTES_PER_TENANT: `${CACHE_BYTES_PER_TENANT}`,
    LOG_LEVEL: "warn",
    SHUTDOWN_GRACE_MS: "2000",
  };
  const keys = await makeKeys(env);
  const fleet = await startFleet({
    env,
    apis: 1,
    workers: options.workers,
    logDir,
    freezer: makeFreezer(),
    descriptors: DESCRIPTORS,
  });
  disposables.add(() => fleet.close());
  const url = fleet.nextUrl() ?? "";
  const victims = await Promise.all(
    keys.victims.map(async (apiKey) => {
      const headers = { authorization: `Bearer ${apiKey}` };
      const signal = () => AbortSignal.timeout(60_000);
      const client = makeClient({ url, headers, signal, onAnswer: () => undefined });
      await loadEarlierDocuments(client);
      return { apiKey, workflowId: await makeWorkflow(client) };
    }),
  );
  return { fleet, url, keys, victims };
}

async function makeKeys(env: Record<string, string>): Promise<Keys> {
  const platform = await openPlatform(loadConfig({ ...env, LOG_LEVEL: "silent" }), { name: "siege" });
  try {
    const { tenancy } = platform;
    const victims: string[] = [];
    for (const name of VICTIMS) {
      const tenantId = await tenancy.ensureTenant(name);
      victims.push((await tenancy.createKey({ tenantId, role: "owner", subject: "ana" })).key);
    }
    const [acme, evil] = [await tenancy.ensureTenant("acme"), await tenancy.ensureTenant("evil")];
    const member = await tenancy.createKey({ tenantId: evil, role: "member", subject: "mallory" });
    const owner = await tenancy.createKey({ tenantId: evil, role: "owner", subject: "eve" });
    const widget = await tenancy.widgetKeys.create({ tenantId: acme, createdBy: "ana" });
    return { victims, member: member.key, owner: owner.key, widget: widget.key };
  } finally {
    await platform.close();
  }
}

/**
 * Loads documents and removes them: the processes of a platform that has run for a day have compiled the code for that.
 * @throws Error when one is not taken or not removed.
 */
async function loadEarlierDocuments(client: Client): Promise<void> {
  const line = "The pump is bled at its highest valve, after the filter was changed. ";
  const json = { content: line.repeat(EARLIER_CHARACTERS / line.length), title: "Pump" };
  for (let n = 0; n < EARLIER_DOCUMENTS; n += 1) {
    const made = await client.call("POST", "/rag/ingest", { json, headers: { prefer: "wait=60" } });
    const { status, text } = await client.call("DELETE", `/rag/documents/${idOf(made, "documentId")}`);
    if (status < 200 || status >= 300) throw new Error(`a document was not removed: ${status} ${text.slice(0, 300)}`);
  }
}

/** The victim's daily workflow. */
async function makeWorkflow(client: Client): Promise<string> {
  const steps = [{ type: "rag_query", query: "pump {{ input.n + 1 }}" }];
  return idOf(await client.call("POST", "/workflows", { json: { name: "Daily", steps } }), "workflowId");
}
