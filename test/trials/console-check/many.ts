import type { Window } from "./browser.ts";
import type { Desk } from "./desk.ts";
import { MODEL } from "./walk.ts";

/** What is done to many at once, or again; and what becomes of answers: ratings, citations. */

const usage = { prompt_tokens: 400, completion_tokens: 60 };
const inBackground = { prefer: "respond-async" };

/** Starts all failed runs of agents again, and stops all that run. */
export async function handleMany({ page }: Window, { call, provider }: Desk): Promise<void> {
  const about = { name: "Many", model: MODEL, systemPrompt: "You answer.", tools: [] };
  const { agentId } = await call("POST", "/agents", { body: about });
  const start = (input: string) =>
    call("POST", `/agents/${agentId}/run`, { body: { input }, headers: inBackground, mayFail: true });
  provider.setDefault({ status: 400, errorMessage: "The pump is on fire." });
  for (const input of ["First?", "Second?", "Third?"]) await start(input);
  await page.goto("/console/runs?kind=agent");
  await page.getByLabel("Agent or workflow").selectOption("Many");
  await page.waitForURL(/agentId=agt_/);
  for (const n of [0, 1, 2]) await page.locator("tbody .badge", { hasText: "failed" }).nth(n).waitFor();
  provider.setDefault({ pieces: ["Now it works."], usage });
  await page.goto(`/console/runs?kind=agent&status=failed&agentId=${agentId}`);
  await page.getByRole("button", { name: "Retry all failed jobs of the kind agent that fit the filter" }).click();
  await page.getByText("3 started again, 0 skipped.").waitFor();
  await page.goto(`/console/runs?agentId=${agentId}`);
  for (const n of [0, 1, 2]) await page.locator("tbody .badge", { hasText: "completed" }).nth(n).waitFor();
  provider.setDefault({ pieces: ["never"], until: new Promise(() => undefined) });
  for (const input of ["Fourth?", "Fifth?"]) await start(input);
  for (const n of [0, 1]) await page.locator("tbody .badge", { hasText: "running" }).nth(n).waitFor();
  await page.goto("/console/runs?kind=agent&status=running");
  await page.getByRole("button", { name: "Cancel all running jobs of the kind agent" }).click();
  await page.getByText(/^[2-9] cancelled, \d skipped\.$/).waitFor();
  await page.goto(`/console/runs?agentId=${agentId}`);
  for (const n of [0, 1]) await page.locator("tbody .badge", { hasText: "cancelled" }).nth(n).waitFor();
  provider.setDefault({ pieces: ["Yes."], usage });
}

/** A document that has failed is read again from its page. */
export async function retryDocument({ page }: Window, { call }: Desk): Promise<void> {
  const form = new FormData();
  form.set("file", new File(["%PDF-1.7 broken"], "broken.pdf", { type: "application/pdf" }));
  await call("POST", "/rag/ingest", { form, headers: { prefer: "wait=60" }, mayFail: true });
  await page.goto("/console/documents?status=failed");
  await page.locator("tbody").getByRole("link", { name: "broken" }).click();
  await page.locator("h1 .badge", { hasText: "failed" }).waitFor();
  const job = page.getByRole("link", { name: "the last one" });
  const before = await job.getAttribute("href");
  await page.getByRole("button", { name: "Retry" }).click();
  await page.locator(`.facts a:not([href="${before}"])`, { hasText: "the last one" }).waitFor();
  await page.locator("h1 .badge", { hasText: "failed" }).waitFor(); // it is as broken as it was
  await page.getByRole("link", { name: "all of them" }).click();
  await page.getByText(/^On the document broken/).waitFor();
  for (const n of [0, 1]) await page.locator("tbody .badge", { hasText: "failed" }).nth(n).waitFor();
}

/** Rates an answer, finds it in the list with what it cites, takes it along as a file, and opens the passage. */
export async function rateAnswer({ page }: Window, { provider }: Desk): Promise<void> {
  provider.next({ pieces: ["Before the season [1]."], usage });
  await page.goto("/console/playground");
  await page.getByLabel("Model").selectOption(MODEL);
  await page.getByRole("textbox", { name: "Prompt", exact: true }).fill("When is the valve bled?");
  await page.getByLabel("Documents").selectOption("*");
  await page.getByRole("button", { name: "Ask" }).click();
  await page.getByText("Was it right?").click();
  await page.getByLabel("Why (optional)").fill("Short and right.");
  await page.getByRole("button", { name: "Right", exact: true }).click();
  await page.getByRole("link", { name: "feedback" }).click();
  const row = page.locator("tbody tr", { hasText: "When is the valve bled?" });
  await row.getByText("Short and right.").waitFor();
  const [saved] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Save the right ones" }).click(),
  ]);
  if (saved.suggestedFilename() !== "questions.jsonl") throw new Error(`It is saved as ${saved.suggestedFilename()}`);
  await row.locator(".citations a").first().click();
  await page.locator("tr.meant .thought", { hasText: "before the season" }).waitFor();
  await page.getByRole("link", { name: "All chunks" }).click();
  await page.getByText("From the passage on that was cited").waitFor({ state: "detached" });
}
