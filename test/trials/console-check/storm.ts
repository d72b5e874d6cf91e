import { setTimeout as delay } from "node:timers/promises";
import type { Window } from "./browser.ts";
import type { Desk } from "./desk.ts";
import { MODEL } from "./walk.ts";

/** What the tab must stand: one batch, and jobs besides, while somebody reads the second page of the runs. */
const BATCH_LINES = 5_000;
const JOBS_A_SECOND = 20;
const SECONDS = 60;
/** Jobs that are there before: more than two pages. */
const BEFORE = 110;

/** What the tab may do then. */
const MAX_REQUESTS_A_SECOND = 2;
const MAX_HEAP_GROWTH = 24 << 20;
const MAX_SHIFT_PX = 2;

type Watched = { top: number; text: string; rows: number };

/** Runs are listed at most twice a second, the page that was read stays where it was, and what is new is announced. */
export async function standStorm(window: Window, desk: Desk): Promise<void> {
  const { page, settle } = window;
  desk.provider.setDefault({ pieces: ["Yes."], usage: { prompt_tokens: 5, completion_tokens: 2 } });
  await makeJobs(desk, { count: BEFORE, everyMs: 0, name: "before" });
  await page.goto("/console/runs");
  await page.evaluate("performance.setResourceTimingBufferSize(10000)");
  await page.getByRole("button", { name: "Older" }).click();
  await page.locator("tbody tr").nth(80).waitFor();
  await page.locator("tbody tr").nth(70).scrollIntoViewIfNeeded();
  await settle();
  const name = await page.locator("tbody tr").nth(70).locator("a").first().getAttribute("href");
  const look = async () => (await page.evaluate(watch(name ?? ""))) as Watched; // as written below
  const before = await look();
  const heapBefore = await measureHeap(window);
  const beganAt = Number(await page.evaluate("performance.now()"));
  await Promise.all([
    startBatch(desk),
    makeJobs(desk, { count: JOBS_A_SECOND * SECONDS, everyMs: 1_000 / JOBS_A_SECOND, name: "storm" }),
  ]);
  const after = await look();
  const starts = (await page.evaluate(
    `performance.getEntriesByType("resource").filter(({ initiatorType, startTime }) => initiatorType === "fetch" && startTime > ${beganAt}).map(({ startTime }) => startTime)`,
  )) as number[]; // as written above
  const most = Math.max(
    0,
    ...starts.map((start) => starts.filter((one) => one >= start && one < start + 1_000).length),
  );
  const growth = (await measureHeap(window)) - heapBefore;
  console.log(
    `    ${starts.length} requests in ${SECONDS} s, at most ${most} in one; the heap grew by ${growth >> 10} KiB`,
  );
  if (most > MAX_REQUESTS_A_SECOND) throw new Error(`${most} requests in one second`);
  if (growth > MAX_HEAP_GROWTH) throw new Error(`The heap grew by ${growth} bytes`);
  if (after.text !== before.text) throw new Error(`The row became ${after.text}`);
  if (Math.abs(after.top - before.top) > MAX_SHIFT_PX) throw new Error(`Moved from ${before.top} to ${after.top}`);
  if (after.rows < before.rows) throw new Error(`${before.rows} rows became ${after.rows}`);
  const fresh = page.getByRole("button", { name: /^\d+\+? new$/ });
  await fresh.click();
  await page.locator("tbody tr").first().waitFor();
  await fresh.waitFor({ state: "detached" });
  if (Number(await page.evaluate("scrollY")) > 0) throw new Error("The newest are not at the top");
}

const watch = (href: string) => `(() => {
  const row = document.querySelector('tbody a[href="${href}"]')?.closest("tr");
  return { top: row?.getBoundingClientRect().top ?? -1, text: row?.querySelector("td")?.textContent ?? "gone", rows: document.querySelectorAll("tbody tr").length };
})()`;

/** Bytes of the page's heap after a collection. */
async function measureHeap({ page, context }: Window): Promise<number> {
  const session = await context.newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  await session.detach();
  return usedSize;
}

/** Texts to ingest, one after the other; those that the machine refuses for a while do no harm. */
async function makeJobs({ call }: Desk, { count, everyMs, name }: { count: number; everyMs: number; name: string }) {
  const headers = { prefer: "respond-async" };
  const startedAt = performance.now();
  const asked: Promise<unknown>[] = [];
  for (let n = 0; n < count; n += 1) {
    const body = { content: `Text ${n} of ${name}.`, title: `${name} ${n}` };
    const ingest = call("POST", "/rag/ingest", { body, headers, mayFail: true });
    asked.push(ingest);
    if (everyMs === 0) await ingest;
    else await delay(Math.max(0, startedAt + (n + 1) * everyMs - performance.now()));
  }
  await Promise.all(asked);
}

async function startBatch({ call }: Desk): Promise<void> {
  const lines = Array.from({ length: BATCH_LINES }, (_, n) => {
    const body = { model: MODEL, messages: [{ role: "user", content: `Is ${n} a number?` }] };
    return JSON.stringify({ custom_id: `line-${n}`, method: "POST", url: "/v1/chat/completions", body });
  });
  const form = new FormData();
  form.set("purpose", "batch");
  form.set("file", new File([lines.join("\n")], "lines.jsonl", { type: "application/jsonl" }));
  const { id } = await call("POST", "/v1/files", { form });
  const body = { input_file_id: id, endpoint: "/v1/chat/completions", completion_window: "24h" };
  await call("POST", "/v1/batches", { body });
}
