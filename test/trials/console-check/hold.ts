import { hostPid } from "../../support/service-pids.ts";
import { endSession } from "./api-client.ts";
import type { Window } from "./browser.ts";
import type { Desk } from "./desk.ts";

/** What the console holds while it is used: the reader's place, what was typed, and the page itself without the store. */

/** Going back shows the same page of a list at the same place; keys of the keyboard go where they say. */
export async function goAround({ page, settle }: Window): Promise<void> {
  await page.goto("/console/runs");
  await page.getByRole("button", { name: "Older" }).click();
  await page.locator("tbody tr").nth(80).waitFor();
  const link = page.locator("tbody tr").nth(70).locator("a").first();
  await link.scrollIntoViewIfNeeded();
  await settle();
  // The list is live: of what the reader has clicked the place counts, and where it is at that moment.
  const href = await link.getAttribute("href");
  const topOf = `document.querySelector('tbody a[href="${href}"]')?.getBoundingClientRect().top ?? -1`;
  await page.evaluate(
    `addEventListener("click", () => { window.clickedAt = ${topOf}; }, { capture: true, once: true })`,
  );
  const title = await page.title();
  await page.locator(`tbody a[href="${href}"]`).click();
  await page.locator(".facts").first().waitFor();
  if ((await page.title()) === title) throw new Error("The page of a run has the title of the list");
  await page.goBack();
  await page.locator("tbody tr").nth(80).waitFor();
  const [before, after] = [Number(await page.evaluate("clickedAt")), Number(await page.evaluate(topOf))];
  if (Math.abs(after - before) > 2) throw new Error(`Back has the row at ${after}, not at ${before}`);
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.locator("tbody tr").nth(1).locator("a:focus").first().waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("c");
  await page.getByRole("heading", { name: "Calls" }).waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog").getByText("Keys and limits").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
}

/** Search and range are in the address, and find the one of many. */
export async function findOne({ page, settle }: Window): Promise<void> {
  await page.goto("/console/runs");
  await page.getByRole("searchbox").fill("before 77");
  await page.getByRole("button", { name: "Find" }).click();
  await page.waitForURL(/q=before\+77/);
  const found = page.locator("tbody a", { hasText: "before 77" });
  const further = page.getByRole("button", { name: "Look further back" }); // a page looks at 5,000 of them
  const search = async () => {
    await found.or(further).first().waitFor();
    if (await further.isVisible()) await further.click();
    await found.waitFor();
  };
  await search();
  await page.getByLabel("Time").selectOption("day");
  await page.waitForURL(/range=day/);
  await settle(); // until then the rows are those of the list before
  await search();
  const rows = await page.locator("tbody tr").count();
  if (rows !== 1) throw new Error(`${rows} rows hold the text`);
}

/** A session that ends while somebody types: the page stays, and with it the text. */
export async function outliveSession(window: Window, { url, apiKey }: Desk): Promise<void> {
  const { page, context } = window;
  const text = "Paid twice, says the";
  await page.goto("/approvals");
  await page.getByRole("link", { name: "Complaint: approve" }).first().click();
  await page.getByLabel("Comment (optional)").fill(text);
  await endSession(url, "/session", await context.cookies());
  await page.getByRole("button", { name: "Approve" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Your API key").fill(apiKey);
  if ((await page.getByLabel("Comment (optional)").inputValue()) !== text) throw new Error("What was typed is gone");
  await dialog.getByRole("button", { name: "Sign in" }).click();
  await dialog.waitFor({ state: "detached" });
  if ((await page.getByLabel("Comment (optional)").inputValue()) !== text) throw new Error("What was typed is gone");
  const asked = page.waitForEvent("dialog"); // which is accepted
  await page.getByRole("link", { name: "Home" }).click();
  if (!(await asked).message().includes("not saved")) throw new Error("Leaving does not ask");
  await page.goBack();
  await page.getByLabel("Comment (optional)").waitFor();
  if ((await page.getByLabel("Comment (optional)").inputValue()) !== text) throw new Error("The draft is gone");
  await page.getByLabel("Comment (optional)").fill("");
}

/** The store stops: the page says so and stays; it continues: the page comes up to date by itself. */
export async function outliveStore({ page }: Window, { dataDir }: Desk): Promise<void> {
  await page.goto("/console/runs");
  await page.locator("tbody tr").first().waitFor();
  const pid = await hostPid(dataDir);
  process.kill(pid, "SIGSTOP");
  try {
    await page.getByRole("link", { name: "Calls" }).click();
    await page.locator(".outage").waitFor();
    if ((await page.getByLabel("Your API key").count()) > 0) throw new Error("An outage asks to sign in");
  } finally {
    process.kill(pid, "SIGCONT");
  }
  await page.locator(".outage").waitFor({ state: "detached" });
  await page.locator("tbody tr").first().waitFor();
}
