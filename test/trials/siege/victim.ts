import { setTimeout as delay } from "node:timers/promises";
import { seededRandom } from "../bench/measure.ts";
import { toForm } from "./attack.ts";
import type { Reports } from "./reports.ts";
import type { Victim } from "./stack.ts";

/** Longest wait for one answer of the victim's, in ms. */
const ANSWER_TIMEOUT_MS = 60_000;
/** Calls of each victim a second: well below a tenant's own rate limit. */
const CALLS_A_SECOND = 7;

export type Experience = {
  /** Times of calls that are answered in the request, and of jobs that are waited for, in ms. */
  calls: number[];
  jobs: number[];
  errors: string[];
};

type Form = Awaited<ReturnType<typeof toForm>>;
type Ask = {
  share: number;
  isJob: boolean;
  method: string;
  path: string;
  body?: object;
  form?: Form;
  /** On a connection of its own, as a program that makes one call has it. */
  isAlone?: true;
  /** Its end must be reported to the victim's receiver, too. */
  isReported?: true;
};

/** Size of the victims' files, in bytes: large enough to need a place among the large bodies. */
const FILE_BYTES = 1_200_000;

function toUpload(): Promise<Form> {
  const line = `{"custom_id":"pump","method":"POST","url":"/v1/chat/completions","body":{}}\n`;
  const file = { bytes: line.repeat(FILE_BYTES / line.length), type: "application/jsonl", name: "pumps.jsonl" };
  return toForm(file, { purpose: "batch" });
}

/** What an ordinary tenant does all day. */
function asksOf(workflowId: string, upload: Form): readonly Ask[] {
  const chat = { messages: [{ role: "user", content: "What does a lease protect a job from?" }] };
  const page = "The pump is bled at its highest valve, after the filter was changed. ".repeat(20);
  const run = { isJob: true, method: "POST", path: `/workflows/${workflowId}/execute`, body: { input: { n: 1 } } };
  return [
    { share: 12, isJob: false, method: "POST", path: "/ai/chat", body: chat },
    { share: 6, isJob: false, method: "POST", path: "/rag/query", body: { query: "How is the pump bled?", topK: 3 } },
    { share: 3, isJob: false, method: "GET", path: "/jobs?limit=20", isAlone: true },
    { share: 3, isJob: true, method: "POST", path: "/rag/ingest", body: { content: page, title: "Pump" } },
    { share: 5, ...run },
    { share: 1, ...run, isReported: true },
    { share: 1, isJob: false, method: "POST", path: "/v1/files", form: upload },
  ];
}

/** Lives the victims' lives until the signal aborts, at a steady pace that no slow answer slows down. */
export async function live(options: {
  url: string;
  victims: readonly Victim[];
  seed: number;
  reports: Reports;
  signal: AbortSignal;
}): Promise<Experience> {
  const { url, victims, reports, signal } = options;
  const experience: Experience = { calls: [], jobs: [], errors: [] };
  const random = seededRandom(options.seed);
  const underWay: Promise<void>[] = [];
  const upload = await toUpload();
  /** What each victim asks for, each ask as often as its share. */
  const lots = victims.map(({ apiKey, workflowId }) => ({
    apiKey,
    lot: asksOf(workflowId, upload).flatMap((ask) => Array.from({ length: ask.share }, () => ask)),
  }));
  while (!signal.aborted) {
    for (const { apiKey, lot } of lots) {
      const ask = lot[Math.floor(random() * lot.length)];
      if (ask) underWay.push(askOnce({ url, apiKey, reports }, ask, experience));
      await delay(1_000 / CALLS_A_SECOND / victims.length);
    }
  }
  await Promise.all(underWay);
  return experience;
}

async function askOnce(
  { url, apiKey, reports }: { url: string; apiKey: string; reports: Reports },
  { method, path, body, form, isJob, isAlone, isReported }: Ask,
  experience: Experience,
): Promise<void> {
  const report = isReported && reports.next();
  const callback = report ? { callback: { url: report.url } } : {};
  const startedAt = performance.now();
  const problem = await fetch(`${url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${apiKey}`,
      ...(body ? { "content-type": "application/json" } : {}),
      ...(form ? { "content-type": form.type } : {}),
      ...(isJob ? { prefer: "wait=60" } : {}),
      ...(isAlone ? { connection: "close" } : {}),
    },
    ...(body ? { body: JSON.stringify({ ...body, ...callback }) } : {}),
    ...(form ? { body: form.body } : {}),
    signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
  }).then(
    async (response) => {
      const text = await response.text();
      const isLate = isJob && response.status === 202;
      return response.ok && !isLate ? undefined : `${response.status} ${text.slice(0, 200)}`;
    },
    (error: unknown) => String(error),
  );
  (isJob ? experience.jobs : experience.calls).push(performance.now() - startedAt);
  if (problem !== undefined) experience.errors.push(`${method} ${path}: ${problem}`);
  else if (report && !(await report.comes()))
    experience.errors.push(`${method} ${path}: its end was not reported in time`);
}
