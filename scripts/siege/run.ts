import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { loadConfig } from "../../src/config.ts";
import { ensureServices } from "../../src/embedded/ensure.ts";
import { makeLogger } from "../../src/logger.ts";
import { openPlatform } from "../../src/platform.ts";
import { type Releasers, withReleasers } from "../../src/releasers.ts";
import { type Fleet, startFleet } from "../chaos/fleet.ts";
import { makeFreezer } from "../chaos/freezer.ts";
import { allAttacks } from "./all-attacks.ts";
import { type Attack, type Field, idOf, makeClient } from "./attack.ts";
import { breachesOf, heading, type Outcome, toLine } from "./report.ts";
import { type Experience, live } from "./victim.ts";
import { watchMemory } from "./watch-memory.ts";

export type SiegeOptions = {
  /** Names of attacks; all when empty. */
  names: readonly string[];
  /** How long each attack lasts, in ms. */
  attackMs: number;
  workers: number;
  seed: number;
  /** An empty folder: the platform's data, and the logs of its processes. */
  folder: string;
  say(text: string): void;
};

/** Time after an attack in which its remains may still run, in ms; the victim's life is measured in it too. */
const AFTERMATH_MS = 3_000;

/**
 * Runs the platform as processes of their own, lets a victim live in it, and attacks it in one way after the other. Answers
 * whether all attacks were repelled.
 */
export function runSiege(options: SiegeOptions): Promise<boolean> {
  return withReleasers(async (releasers) => {
    try {
      return await underSiege(options, releasers);
    } finally {
      await releasers.close();
    }
  });
}

async function underSiege(options: SiegeOptions, releasers: Releasers): Promise<boolean> {
  const { say, attackMs, seed } = options;
  const { fleet, keys } = await openStack(options, releasers);
  const url = fleet.nextUrl() ?? "";
  const victim = { url, apiKey: keys.victim, workflowId: await makeVictimWorkflow(url, keys.victim), seed };
  const attacks = allAttacks(keys.member).filter(
    ({ name }) => options.names.length === 0 || options.names.includes(name),
  );
  await live({ ...victim, signal: AbortSignal.timeout(AFTERMATH_MS) }); // warm
  const calm = await measure(
    fleet,
    victim,
    { name: "idle", about: "nothing", run: () => delay(attackMs) },
    { keys, attackMs },
  );
  say(heading);
  say(toLine(calm, []));
  let isHeld = true;
  for (const attack of attacks) {
    const outcome = await measure(fleet, victim, attack, { keys, attackMs });
    const breaches = breachesOf(outcome, calm.experience);
    say(toLine(outcome, breaches));
    for (const breach of breaches) say(`    ! ${breach}`);
    if (breaches.length > 0) isHeld = false;
  }
  return isHeld;
}

type Keys = { victim: string; widget: string; member: string };
type Victim = Omit<Parameters<typeof live>[0], "signal">;

async function measure(
  fleet: Fleet,
  victim: Victim,
  attack: Attack,
  { keys, attackMs }: { keys: Keys; attackMs: number },
): Promise<Outcome> {
  const over = new AbortController();
  let answeredBytes = 0;
  const client = (headers: Record<string, string>) =>
    makeClient({
      url: victim.url,
      headers,
      signal: () => over.signal,
      onAnswer: (bytes) => {
        answeredBytes += bytes;
      },
    });
  const field: Field = {
    url: victim.url,
    member: client({ authorization: `Bearer ${keys.member}` }),
    visitor: client({ authorization: `Bearer ${keys.widget}` }),
    stranger: client({}),
    signal: over.signal,
  };
  await attack.prepare?.(field);
  answeredBytes = 0;
  const endedBefore = fleet.unexpected.length;
  const memory = watchMemory();
  const living: Promise<Experience> = live({ ...victim, signal: AbortSignal.timeout(attackMs + AFTERMATH_MS) });
  const timer = setTimeout(() => over.abort(), attackMs);
  await attack.run(field);
  clearTimeout(timer);
  over.abort();
  const experience = await living;
  const { name, about } = attack;
  return {
    name,
    about,
    experience,
    peaks: await memory.stop(),
    ended: fleet.unexpected.slice(endedBefore),
    answeredBytes,
  };
}

async function openStack(options: SiegeOptions, releasers: Releasers): Promise<{ fleet: Fleet; keys: Keys }> {
  const dataDir = join(options.folder, "data");
  const logDir = join(options.folder, "logs");
  await mkdir(logDir, { recursive: true });
  const services = await ensureServices({
    dataDir,
    mongo: true,
    redis: true,
    logger: makeLogger({ level: "silent", name: "siege" }),
  });
  releasers.add(() => services.close());
  const env = {
    DATA_DIR: dataDir,
    MONGODB_URL: services.mongoUrl ?? "",
    REDIS_URL: services.redisUrl ?? "",
    PORT: "0",
    LOG_LEVEL: "warn",
  };
  const keys = await makeKeys(env);
  const fleet = await startFleet({ env, apis: 1, workers: options.workers, logDir, freezer: makeFreezer() });
  releasers.add(() => fleet.close());
  return { fleet, keys };
}

async function makeKeys(env: Record<string, string>): Promise<Keys> {
  const platform = await openPlatform(loadConfig({ ...env, LOG_LEVEL: "silent" }), { name: "siege" });
  try {
    const { tenancy } = platform;
    const [acme, evil] = [await tenancy.ensureTenant("acme"), await tenancy.ensureTenant("evil")];
    const victim = await tenancy.createKey({ tenantId: acme, role: "owner", subject: "ana" });
    const member = await tenancy.createKey({ tenantId: evil, role: "member", subject: "mallory" });
    const widget = await tenancy.widgetKeys.create({ tenantId: acme, createdBy: "ana" });
    return { victim: victim.key, member: member.key, widget: widget.key };
  } finally {
    await platform.close();
  }
}

async function makeVictimWorkflow(url: string, apiKey: string): Promise<string> {
  const headers = { authorization: `Bearer ${apiKey}` };
  const client = makeClient({ url, headers, signal: () => AbortSignal.timeout(30_000), onAnswer: () => undefined });
  const steps = [{ type: "rag_query", query: "pump {{ input.n + 1 }}" }];
  return idOf(await client.call("POST", "/workflows", { json: { name: "Daily", steps } }), "workflowId");
}
