import { type CompletionRecord, completionsCollection } from "../../../src/store/completion-store.ts";
import { type UsageRecord, usageCollection } from "../../../src/store/usage-store.ts";
import type { JobOf } from "./check-jobs.ts";
import { about, type Check, type Evidence, total } from "./evidence.ts";
import { models } from "./work.ts";

/** The promises about money: what a provider did is charged once at most, and what a batch did exactly once. */
export async function checkMoney(evidence: Evidence, jobOf: JobOf): Promise<Check[]> {
  const { db, tenants, load, external, submitted } = evidence;
  const records = await db.collection<CompletionRecord>(completionsCollection.name).find().toArray();
  const usage = await db.collection<UsageRecord>(usageCollection.name).find().toArray();
  const byLog = new Map(records.map((record) => [record._id, record]));
  const online = [models.agent, models.workflow, models.composite, models.chat];
  const twice: string[] = [];
  let [charged, answered] = [0, 0];
  for (const { number, tenantId } of tenants) {
    for (const model of online) {
      const calls = external.answered.get(`${number} ${model}`) ?? 0;
      const paid = records.filter(
        (one) => one.tenantId === tenantId && one.model === model && one.usageSource === "provider",
      ).length;
      if (paid > calls) twice.push(`tenant ${number} paid ${paid} answers of ${model}, and had ${calls}`);
      charged += paid;
      answered += calls;
    }
  }
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
      promise: "nothing is charged twice",
      found: `${answered} answers of models, ${charged} charged; ${unpaid} of ${load.chats.length} chats lost their charge with a killed API`,
      breaches: [...twice, ...wrongChats.map((ticket) => `chat ${ticket} had the answer of another`)],
    },
    checkBatches(evidence, records, jobOf, submitted),
  ];
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
