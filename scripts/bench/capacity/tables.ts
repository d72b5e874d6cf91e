import { format } from "../goals.ts";
import type { Demand, Kind } from "./demand.ts";
import { agentCalls, agentThinkMs, kinds, type Part, searchedChunks, streamWords, workflowSteps } from "./demand.ts";
import type { Figures } from "./measured.ts";
import { type Plan, planAll } from "./plan.ts";
import { type Compared, compareAll } from "./predict.ts";
import { documentOf, further, type Unit, workflowOf } from "./volumes.ts";

const count = (value: number) => Math.round(value).toLocaleString("en-US");
const toTable = (head: readonly string[], rows: readonly (readonly string[])[]) =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");

/** What the page calls a unit of each kind. */
const unitNames = ({ largeDocumentChunks }: Figures): Record<Kind, string> => ({
  chat: "chat, JSON",
  "streamed chat": `chat, streamed in ${streamWords} parts`,
  "stored response": "response of `/v1/responses`, stored, JSON",
  query: `hybrid query over ${count(searchedChunks)} chunks`,
  "no-op job": "job that does nothing",
  "short workflow": `workflow of ${workflowSteps["short workflow"]} conditions`,
  "long workflow": `workflow of ${workflowSteps["long workflow"]} conditions`,
  "small document": "document of 1 chunk",
  "large document": `document of ${largeDocumentChunks} chunks`,
  "agent run": `agent run: ${agentCalls} model calls of ${agentThinkMs} ms, ${agentCalls - 1} tools`,
});

type Row = { name: string; unit: Unit; redis: number; aloneMs?: number };

/** Demands, by unit. */
function demandRows(figures: Figures): Row[] {
  const names = unitNames(figures);
  const toRow = (kind: Kind): Row => {
    const { busy: cpu, besideMs, messages, storedBytes, redisCommands, latencyMs }: Demand = figures.demands[kind];
    const storeMessages = messages.api.store + messages.worker.store;
    const unit = { cpu, besideMs, storeMessages, storedBytes, redisCommands };
    return { name: names[kind], unit, redis: messages.api.redis + messages.worker.redis, aloneMs: latencyMs.p50 };
  };
  const more = (name: string, unitOf: typeof documentOf): Row => ({
    name,
    unit: further(unitOf, figures),
    redis: Number.NaN,
  });
  return [
    ...kinds.map(toRow),
    more("each further chunk of a document", documentOf),
    more("each further step of a workflow", workflowOf),
  ];
}

function demandTable(figures: Figures): string {
  const head = [
    "unit",
    "API",
    "worker",
    "parser",
    "store",
    "Redis",
    "other threads",
    "messages to the store",
    "messages to Redis (commands)",
    "bytes kept",
    "alone, p50",
  ];
  const rows = demandRows(figures).map(
    ({ name, unit: { cpu, besideMs, storeMessages, redisCommands, storedBytes }, redis, aloneMs }) => [
      name,
      ...[cpu.api, cpu.worker, cpu.parser, cpu.store, cpu.redis, besideMs, storeMessages].map(format),
      `${Number.isNaN(redis) ? "" : `${format(redis)} `}(${format(redisCommands)})`,
      count(storedBytes),
      aloneMs === undefined ? "" : `${format(aloneMs)} ms`,
    ],
  );
  return toTable(head, rows);
}

/** Units a second at which one process of each part has no time left. */
function saturationTable(figures: Figures): string {
  const parts = ["api", "worker", "parser", "store", "redis"] as const;
  const cell = (ms: number) => (ms < 0.02 ? "" : count(1_000 / ms));
  const all = ({ cpu, besideMs }: Unit) => parts.reduce((sum, part) => sum + cpu[part], besideMs);
  const rows = demandRows(figures).map(({ name, unit }) => [
    name,
    ...parts.map((part) => cell(unit.cpu[part])),
    cell(all(unit)),
  ]);
  return toTable(
    ["units a second", "one API", "one worker", "one parser", "the embedded store", "Redis", "all on one core"],
    rows,
  );
}

const toPercent = (value: number) => `${count(value)} %`;
const ratio = (
  measured: number | undefined,
  predicted: number | undefined,
  digits: (value: number) => string = format,
) =>
  measured === undefined || predicted === undefined
    ? ""
    : `${digits(measured)} → ${digits(predicted)} (${format(predicted / measured)}×)`;

function checkTable(compared: readonly Compared[]): string {
  const rows = compared.map(({ measured, predicted }) => [
    `${measured.kind}, ${measured.workers} worker${measured.workers > 1 ? "s" : ""}, ${measured.layout}`,
    ratio(measured.perSecond, predicted.perSecond, measured.perSecond > 100 ? count : format),
    ratio(
      measured.half && (measured.half.cpu.api * measured.perSecond) / 20,
      (predicted.half?.apiShare ?? 0) * 100,
      toPercent,
    ),
    ratio(measured.half?.accept.p50, predicted.half?.accept.p50),
    ratio(measured.half?.accept.p99, predicted.half?.accept.p99),
    ratio(measured.half?.job?.p50, predicted.half?.job.p50),
    ratio(measured.half?.job?.p99, predicted.half?.job.p99),
    measured.half
      ? `${count(measured.half.longestStallMs.api)} / ${count(measured.half.longestStallMs.generator)}`
      : "",
  ]);
  return toTable(
    [
      "measured → predicted",
      "units a second, saturated",
      "API's core at half of that",
      "response p50, ms",
      "p99, ms",
      "job's end p50, ms",
      "p99, ms",
      "longest stall of API / generator, ms",
    ],
    rows,
  );
}

const percent = (share: number) => (share < 0.005 ? "" : `${count(share * 100)} %`);

function shareTable(plans: readonly Plan[]): string {
  const parts: readonly Exclude<Part, "client">[] = ["api", "worker", "parser", "store", "redis"];
  const rows = plans.map(({ name, meanPerSecond, peakPerSecond, shares, besideCores }) => [
    name,
    `${count(meanPerSecond)} / ${count(peakPerSecond)}`,
    ...parts.map((part) => percent(shares[part])),
    percent(besideCores),
  ]);
  return toTable(
    [
      "a day",
      "units a second, mean / peak",
      "of one API",
      "of one worker",
      "of one parser",
      "of the embedded store",
      "of Redis",
      "of a core, other threads",
    ],
    rows,
  );
}

function planTable(plans: readonly Plan[]): string {
  const rows = plans.map((plan) => [
    plan.name,
    String(plan.apis),
    String(plan.workers),
    plan.placesAtPeak > 0 ? count(plan.placesAtPeak) : "",
    format(Object.values(plan.shares).reduce((sum, share) => sum + share, plan.besideCores)),
    `${count(plan.storeMessagesPerSecond)}/s`,
    plan.redisCommandsPerSecond < 1 ? "" : `${count(plan.redisCommandsPerSecond)}/s`,
    `${format(plan.gigabytesADay)} GB`,
    plan.day ? `${format(plan.day.accept.p50)} / ${format(plan.day.accept.p99)}` : "",
    plan.day && plan.workers > 0 ? `${format(plan.day.place.p50)} / ${format(plan.day.place.p99)}` : "",
  ]);
  return toTable(
    [
      "a day",
      "APIs",
      "workers",
      "runs at once, peak",
      "cores, peak",
      "messages to the store, peak",
      "Redis commands, peak",
      "kept a day",
      "response p50 / p99, ms",
      "wait for a worker p50 / p99, ms",
    ],
    rows,
  );
}

function stockTable({ stock: { chunk, waitingJob, idleMb } }: Figures): string {
  const rows = [
    [
      "a chunk of 512 dimensions",
      `${count(chunk.storeMemory)} bytes of the store's memory`,
      `${count(chunk.storedBytes)} bytes of its file`,
    ],
    [
      "a job that waits",
      `${count(waitingJob.redisMemory)} bytes of Redis' memory`,
      `${count(waitingJob.storedBytes)} bytes of the store's file`,
    ],
    [
      "an idle process",
      `API ${count(idleMb.api)} MB, worker ${count(idleMb.worker)} MB, store ${count(idleMb.store)} MB, Redis ${count(idleMb.redis)} MB`,
      "",
    ],
  ];
  return toTable(["what", "memory", "disk"], rows);
}

/** Every table of docs/capacity.md, by the name of its markers. The same figures give the same tables. */
export function tablesOf(figures: Figures): Record<string, string> {
  const { processor, cores, node, date } = figures.machine;
  const plans = planAll(figures);
  return {
    machine: `Measured by \`npm run bench -- capacity\` on ${date}: ${cores} cores (${processor}), Node ${node}.`,
    demands: demandTable(figures),
    saturation: saturationTable(figures),
    stock: stockTable(figures),
    checks: checkTable(compareAll(figures)),
    shares: shareTable(plans),
    plan: planTable(plans),
  };
}

/** The page with these tables between their markers. @throws Error when a marker is missing. */
export function withTables(page: string, tables: Record<string, string>): string {
  return Object.entries(tables).reduce((text, [name, table]) => {
    const [begin, end] = [`<!-- ${name}:begin -->`, `<!-- ${name}:end -->`];
    const [from, to] = [text.indexOf(begin), text.indexOf(end)];
    if (from < 0 || to < from) throw new Error(`docs/capacity.md lacks ${begin} or ${end}`);
    return `${text.slice(0, from)}${begin}\n${table}\n${text.slice(to)}`;
  }, page);
}
