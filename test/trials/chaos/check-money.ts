import { type CompletionRecord, completionsCollection } from "../../../src/store/completion-store.ts";
import { type UsageRecord, usageCollection } from "../../../src/store/usage-store.ts";
import type { JobOf } from "./check-jobs.ts";
import { about, type Check, type Evidence, total } from "./evidence.ts";
import type { InvoiceLine } from "./external-world.ts";
import { prices } from "./models.ts";

/** How long before the end of its process an answer may have come whose charge is lost with it, in ms. */
const LOST_WITHIN_MS = 15_000;
/** Between the end of a call and an answer that came just then, in ms. */
const CROSSED_WITHIN_MS = 2_000;

/** The promises about money: what a provider did is charged once at most, and what a batch did exactly once. */
export async function checkMoney(evidence: Evidence, jobOf: JobOf): Promise<Check[]> {
  const { db, load, external, submitted } = evidence;
  const records = await db.collection<CompletionRecord>(completionsCollection.name).find().toArray();
  const usage = await db.collection<UsageRecord>(usageCollection.name).find().toArray();
  const byLog = new Map(records.map((record) => [record._id, record]));
  const { charged, estimated, lost, breaches: twice } = compareInvoice(evidence, records);
  const recorded = sumByModel(records.map((one) => ({ ...one, requests: 1 })));
  for (const [served, { requests, costNanoUsd }] of sumByModel(usage)) {
    const kept = recorded.get(served);
    if (requests > (kept?.requests ?? 0)) twice.push(`${served} counts ${requests} calls for ${kept?.requests}`);
    if (costNanoUsd > (kept?.costNanoUsd ?? 0))
      twice.push(`${served} counts ${costNanoUsd} nano-USD for ${kept?.costNanoUsd}`);
  }
  const wrongChats = load.chats.filter(({ ticket, text }) => !text.includes(ticket)).map(({ ticket }) => ticket);
  const unpaid = load.chats.filter(({ logId }) => !byLog.has(logId)).length;
  return [
    {
      promise: "nothing is charged twice, and all that the provider asks for is charged at its price",
      found: `${external.invoice.length} answers of models, ${charged} charged at their price, ${estimated} given up by their caller and charged by an estimate, ${lost} lost with a killed process; ${unpaid} of ${load.chats.length} chats are among these`,
      breaches: [...twice, ...wrongChats.map((ticket) => `chat ${ticket} had the answer of another`)],
    },
    checkBatches(evidence, records, jobOf, submitted),
  ];
}

/** Holds the invoice of the provider against the calls that are charged, line by line. */
function compareInvoice(
  { tenants, external, ends }: Evidence,
  records: readonly CompletionRecord[],
): { charged: number; estimated: number; lost: number; breaches: string[] } {
  const numberOf = new Map(tenants.map(({ tenantId, number }) => [tenantId, number]));
  const lines = new Map(external.invoice.map((line) => [keyOf(line), line]));
  const breaches: string[] = [];
  for (const record of records) {
    const { model, inputTokens: prompt, outputTokens: completion } = record;
    if (record.usageSource !== "provider" || record.isBatched || record.isCached || prices[model] === undefined)
      continue;
    const line = lines.get(keyOf({ tenant: numberOf.get(record.tenantId) ?? 0, model, prompt, completion }));
    if (line === undefined) breaches.push(`${record._id} is charged, and on no invoice, or charged twice`);
    else lines.delete(keyOf(line));
    const [input, output] = prices[model];
    const cost = prompt * input + completion * output;
    if (record.costNanoUsd !== cost) breaches.push(`${record._id} costs ${record.costNanoUsd} nano-USD for ${cost}`);
  }
  const charged = external.invoice.length - lines.size;
  const given = new Set(
    records.filter(({ usageSource, inputTokens }) => usageSource === "estimate" && inputTokens > 0),
  );
  for (const [key, line] of lines) {
    const estimate = [...given].find((one) => numberOf.get(one.tenantId) === line.tenant && isOfCall(one, line));
    if (estimate === undefined) continue;
    given.delete(estimate);
    lines.delete(key);
  }
  const estimated = external.invoice.length - charged - lines.size;
  for (const line of lines.values())
    if (!isLostWithProcess(line, ends)) breaches.push(`${keyOf(line)} of ${new Date(line.at).toISOString()} is unpaid`);
  return { charged, estimated, lost: lines.size, breaches };
}

const keyOf = ({
  tenant,
  model,
  prompt,
  completion,
}: Pick<InvoiceLine, "tenant" | "model" | "prompt" | "completion">) =>
  `the answer of ${model} to tenant ${tenant} with ${prompt} and ${completion} tokens`;

/** Whether a call whose caller did not wait for its end was under way when an answer came. */
function isOfCall({ model, createdAt, durationMs }: CompletionRecord, line: InvoiceLine): boolean {
  return model === line.model && line.at >= +createdAt && line.at < +createdAt + durationMs + CROSSED_WITHIN_MS;
}

/** Whether the process that asked has ended soon after the answer. */
function isLostWithProcess({ at, process }: InvoiceLine, ends: Evidence["ends"]): boolean {
  const end = ends[process - 1] ?? Number.POSITIVE_INFINITY;
  return end > at - CROSSED_WITHIN_MS && end - at < LOST_WITHIN_MS;
}

type Counted = { tenantId: string; model: string; requests: number; costNanoUsd: number };

/** Calls and cost of each tenant and model. */
function sumByModel(rows: readonly Counted[]): Map<string, Pick<Counted, "requests" | "costNanoUsd">> {
  const sums = new Map<string, Pick<Counted, "requests" | "costNanoUsd">>();
  for (const { tenantId, model, requests, costNanoUsd } of rows) {
    const key = `${tenantId} ${model}`;
    const sum = sums.get(key) ?? { requests: 0, costNanoUsd: 0 };
    sums.set(key, { requests: sum.requests + requests, costNanoUsd: sum.costNanoUsd + costNanoUsd });
  }
  return sums;
}

/** An item of a batch is submitted once, and charged once, at the same price as every other. */
function checkBatches(
  { load, tenants }: Evidence,
  records: readonly CompletionRecord[],
  jobOf: JobOf,
  submitted: ReadonlyMap<string, number>,
): Check {
  const breaches: string[] = [];
  const lines = load.accepted.filter(({ work }) => work === "batch");
  for (const line of lines) {
    const times = submitted.get(jobOf(line)?._id ?? "") ?? 0;
    if (times !== 1) breaches.push(`${about(line)} was submitted ${times} times`);
  }
  const batched = records.filter(({ isBatched }) => isBatched);
  const prices = new Set(batched.filter(({ outcome }) => outcome === "completed").map((one) => one.costNanoUsd));
  if (prices.size > 1) breaches.push(`lines cost ${[...prices].join(" and ")} nano-USD`);
  for (const tenant of tenants) {
    const own = lines.filter((line) => line.tenant === tenant && jobOf(line)?.status === "completed").length;
    const paid = batched.filter((one) => one.tenantId === tenant.tenantId && one.outcome === "completed").length;
    if (paid !== own) breaches.push(`tenant ${tenant.number} paid ${paid} lines of batches, and had ${own}`);
  }
  return {
    promise: "each item of a batch is submitted and charged once",
    found: `${lines.length} items, submitted ${total(submitted)} times, charged ${batched.length} times`,
    breaches,
  };
}
