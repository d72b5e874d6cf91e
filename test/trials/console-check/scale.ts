import type { Disposables } from "../../../src/lib/disposables.ts";
import { openBrowser, openWindow, type Window } from "./browser.ts";
import { type Desk, openDesk } from "./desk.ts";
import { fillStore, sizes } from "./fill-store.ts";
import { signIn } from "./walk.ts";

/** What a list's first page, and the first paint of the console, may take at most, in ms. */
const MAX_LIST_MS = 300;
const MAX_PAINT_MS = 1_000;
/** Times that each is measured; the worst counts. */
const ROUNDS = 10;

type Measured = { name: string; median: number; worst: number; limit: number };

/** Measures the lists and the first paint with a full store. Returns what takes too long, each as a line. @throws NoBrowser */
export async function measureScale(disposables: Disposables): Promise<string[]> {
  const desk = await openDesk(disposables);
  const startedAt = performance.now();
  const made = await fillStore(desk);
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
  console.log(`  ${sizes.runs} runs, ${sizes.documents} documents and ${sizes.calls} calls in ${seconds} s`);
  const measured: Measured[] = [];
  for (const path of listsOf(made)) measured.push(await measureList(desk, path));
  const window = await openWindow(await openBrowser(disposables), { url: desk.url, name: "owner" });
  await signIn(window, desk.apiKey);
  for (const path of [
    "/",
    "/console/runs",
    "/console/runs?q=desk&range=week",
    "/console/documents",
    "/console/calls",
    "/console/approvals?status=approved",
  ]) {
    measured.push(await measurePaint(window, path));
  }
  for (const { name, median, worst, limit } of measured) {
    console.log(`  ${name}: median ${median.toFixed(0)} ms, worst ${worst.toFixed(0)} ms of ${limit}`);
  }
  const slow = measured.filter(({ worst, limit }) => worst > limit);
  return [
    ...slow.map(({ name, worst, limit }) => `${name} takes ${worst.toFixed(0)} ms, more than ${limit}`),
    ...window.faults,
  ];
}

/** A time of the last week, as many days later as are named. */
const lastWeek = (days = 0) => new Date(Date.now() - (7 - days) * 86_400_000).toISOString();

/** The first page of each list, as the console asks for it. */
const listsOf = ({ agentId, workflowId, documentId }: Awaited<ReturnType<typeof fillStore>>) => [
  ...[
    ...["q=desk+4711", "q=nowhere", `from=${lastWeek()}`, `from=${lastWeek()}&to=${lastWeek(3)}&status=failed`],
    ...[`agentId=${agentId}`, `workflowId=${workflowId}`, "startedBy=bootstrap", "startedBy=nobody"],
    ...["collection=default", "collection=nowhere", `documentId=${documentId}`],
  ].map((filter) => `/jobs?limit=50&${filter}`),
  ...["q=none", "q=desk", `from=${lastWeek()}&to=${lastWeek(3)}`, `agentId=${agentId}`].map(
    (filter) => `/ai/logs?limit=50&${filter}`,
  ),
  ...["q=nowhere", "q=complaint", `from=${lastWeek()}`].map(
    (filter) => `/workflows/approvals?status=approved&limit=50&${filter}`,
  ),
  ...["", "&kind=agent", "&status=failed", "&status=completed", "&kind=workflow&status=completed"].map(
    (filter) => `/jobs?limit=50${filter}`,
  ),
  ...["indexed", "failed"].map((status) => `/rag/documents?status=${status}&limit=50`),
  "/rag/documents?status=indexed&title=pump+4711&limit=50",
  ...["", "&status=failed", "&kind=chat", "&model=none", "&surface=agents"].map(
    (filter) => `/ai/logs?limit=50${filter}`,
  ),
  ...["pending", "approved"].map((status) => `/workflows/approvals?status=${status}&limit=50`),
  ...["/agents?limit=50", "/workflows?limit=50", "/keys?limit=50"],
  ...["day", "model", "key"].map((group) => `/usage?groupBy=${group}`),
];

async function measureList({ call }: Desk, path: string): Promise<Measured> {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const startedAt = performance.now();
    await call("GET", path);
    times.push(performance.now() - startedAt);
  }
  return summarize(path, times, MAX_LIST_MS);
}

/** From the navigation to the first paint, with nothing of the page in the browser's cache the first time. */
async function measurePaint({ page, settle }: Window, path: string): Promise<Measured> {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    await page.goto(path);
    await page.locator("main h1").first().waitFor();
    await settle();
    times.push(Number(await page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime")));
  }
  return summarize(`first paint of ${path}`, times, MAX_PAINT_MS);
}

function summarize(name: string, times: number[], limit: number): Measured {
  const sorted = times.toSorted((a, b) => a - b);
  return { name, median: sorted[Math.floor(sorted.length / 2)] ?? 0, worst: sorted.at(-1) ?? 0, limit };
}
