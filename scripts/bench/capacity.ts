import { readFile, writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import { Redis } from "ioredis";
import { type Check, checkCases, measureCheck } from "./capacity/checks.ts";
import { agentThinkMs, type Demand, type Kind, kinds } from "./capacity/demand.ts";
import { type Desk, measureDemand, measureIdle, startModel } from "./capacity/demands.ts";
import { type Figures, readFigures, writeFigures } from "./capacity/measured.ts";
import { measureStock, searcherName } from "./capacity/stock.ts";
import { tablesOf, withTables } from "./capacity/tables.ts";
import { openWorks } from "./capacity/works.ts";
import { pin } from "./children.ts";
import { withStore } from "./fill-chunks.ts";
import { openStack, openTenant } from "./stack.ts";

const page = new URL("../../docs/capacity.md", import.meta.url);

/** What can be measured apart: each takes one or two minutes of a machine that does nothing else. */
export const capacityParts = ["demands", "checks"] as const;
export type CapacityPart = (typeof capacityParts)[number];

/**
 * Measures what each kind of work takes of each part, and how much the whole takes on one core and on two. What is not asked for
 * is kept as it was measured before. Then prints the tables of docs/capacity.md, which a simulation makes of these figures;
 * with `isWritten` figures and page are kept.
 */
export async function capacityBench({ isWritten, asked }: { isWritten: boolean; asked: readonly CapacityPart[] }) {
  const measured = asked.length > 0 ? await measureAll(asked) : {};
  const isAll = capacityParts.every((part) => asked.includes(part));
  const figures = { ...(isAll ? {} : await readFigures()), ...measured } as Figures; // all parts together
  if (isWritten) await writeFigures(figures);
  const kept = isWritten ? await readFigures() : figures; // rounded, so that the page can be made again
  const tables = tablesOf(kept);
  for (const [name, table] of Object.entries(tables)) console.log(`\n${name}\n${table}`);
  if (isWritten) await writeFile(page, withTables(await readFile(page, "utf8"), tables));
}

async function measureAll(asked: readonly CapacityPart[]): Promise<Partial<Figures>> {
  const isAsked = (part: CapacityPart) => asked.includes(part);
  const quick = await withDesk("quick", async (desk) => {
    const stock = await measureStock(desk); // with the chunks that are searched
    const demands = isAsked("demands") ? await measureEach(desk, others) : {};
    const largeDocumentChunks = isAsked("demands") ? await countChunks(desk) : 0;
    const checks = isAsked("checks") ? await measureChecks(desk) : [];
    return { stock, demands, largeDocumentChunks, checks };
  });
  if (!isAsked("demands")) return { checks: quick.checks };
  const agents = await withDesk("agent", (desk) => measureEach(desk, ["agent run"]));
  const machine = {
    processor: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    node: process.versions.node,
    date: new Date().toISOString().slice(0, 10),
  };
  const demands = { ...quick.demands, ...agents } as Record<Kind, Demand>; // together all of them
  const { checks, ...measured } = { ...quick, machine, demands };
  return isAsked("checks") ? { ...measured, checks } : measured;
}

const others = kinds.filter((kind) => kind !== "agent run");

async function measureChecks(desk: Desk): Promise<Check[]> {
  const checks: Check[] = [];
  for (const asked of checkCases) {
    const check = await measureCheck(desk, asked);
    console.log(`${seconds()} s: ${check.kind}, ${check.layout}, ${check.perSecond.toFixed(0)}/s`);
    checks.push(check);
  }
  return checks;
}

const seconds = () => (performance.now() / 1_000).toFixed(0);

/** A stack with one worker; the generator and its model have core 0 to themselves, as far as the others leave it. */
async function withDesk<T>(model: "quick" | "agent", work: (desk: Desk) => Promise<T>): Promise<T> {
  pin(process.pid, 0);
  const upstream = await startModel(model, agentThinkMs);
  pin(process.pid, "any"); // what the stack starts would inherit it
  const env = { EDGE_BASE_URL: `${upstream.ready.url}/v1`, EDGE_MODEL: "bench" };
  const stack = await openStack({ workers: 1, env, apiCore: 1, apiArgs: ["count-work"], workerArgs: ["count-work"] });
  const redis = new Redis(stack.redisUrl);
  const works = await openWorks(stack, (await openTenant(stack, searcherName)).headers);
  pin(process.pid, 0);
  try {
    return await work({ stack, redis, works, clients: [upstream] });
  } finally {
    pin(process.pid, "any");
    await works.close();
    redis.disconnect();
    for (const further of stack.workers.slice(1)) await further.stop();
    await stack.close();
    await upstream.stop();
  }
}

async function measureEach(desk: Desk, asked: readonly Kind[]): Promise<Partial<Record<Kind, Demand>>> {
  const idle = await measureIdle(desk);
  const demands: Partial<Record<Kind, Demand>> = {};
  for (const kind of asked) {
    demands[kind] = await measureDemand(desk, kind, idle);
    console.log(`${seconds()} s: ${kind}`);
  }
  return demands;
}

/** Chunks of the large document that was ingested last. */
async function countChunks({ stack }: Desk): Promise<number> {
  const found = await withStore(stack, (db) =>
    db.collection<{ chunks: number }>("documents").find({}).sort({ _id: -1 }).limit(1).toArray(),
  );
  return found[0]?.chunks ?? Number.NaN;
}
