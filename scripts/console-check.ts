import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Command } from "commander";
import type { Page } from "playwright-core";
import { loadConfig } from "../src/config.ts";
import { type Disposables, withDisposables } from "../src/disposables.ts";
import { findBarriers, NoBrowser, openBrowser, openWindow, type Window } from "./console-check/browser.ts";
import * as walk from "./console-check/walk.ts";
import { runStack } from "./start/run-stack.ts";

/** How each screen is looked at; width in px. */
const looks = [
  { name: "light", colorScheme: "light", width: 1280 },
  { name: "dark", colorScheme: "dark", width: 1280 },
  { name: "narrow", colorScheme: "light", width: 390 },
] as const;

/**
 * `npm run console-check`: does in Debian's Chromium what a person does in the console, and looks at each screen with axe, in
 * light and dark and on a narrow screen. Exit code 0 when all is well; 1 when not; 2 when there is no browser.
 */
const program = new Command("console-check")
  .description("use the console in a real browser")
  .option("--shots <folder>", "keep a picture of each screen here")
  .parse();
const { shots } = program.opts<{ shots?: string }>();

try {
  process.exitCode = (await withDisposables(check)) ? 0 : 1;
} catch (error) {
  console.error(error instanceof NoBrowser ? error.message : error);
  process.exitCode = error instanceof NoBrowser ? 2 : 1;
}

async function check(disposables: Disposables): Promise<boolean> {
  const dataDir = await mkdtemp(join(tmpdir(), "switchyard-console-"));
  disposables.add(() => rm(dataDir, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 }));
  const browser = await openBrowser(disposables);
  const config = loadConfig({ ...process.env, DATA_DIR: dataDir, PORT: "0", WORKERS: "1" });
  const stack = await runStack(config, { say: () => undefined, env: { PORT: "0", RATE_LIMIT_RPM: "100000" } });
  disposables.add(() => stack.close());
  const { url, apiKey } = stack;
  const [owner, approver, member, stranger] = (await Promise.all([1, 2, 3, 4].map(() => openWindow(browser, url)))) as [
    Window,
    Window,
    Window,
    Window,
  ]; // one for each of the four
  const faults: string[] = [];
  const step = async (name: string, work: () => Promise<unknown>) => {
    const startedAt = performance.now();
    await work().catch((error: Error) => faults.push(`${name}: ${error.message}`));
    console.log(`  ${name}, ${((performance.now() - startedAt) / 1_000).toFixed(1)} s`);
  };
  await step("sign in", () => walk.signIn(owner, apiKey));
  await step("first paint", async () => console.log(`    ${await firstPaint(owner.page)}`));
  await step("sign in in a second window", () => walk.signIn(approver, apiKey));
  await step("drop documents", () => walk.dropDocuments(owner));
  await step("ask in the playground", () => walk.askInPlayground(owner));
  await step("run an agent", () => walk.runAgent(owner));
  await step("approve a workflow in another window", () => walk.approveWorkflow(owner, approver));
  await step("see the spend, and a call", () => walk.seeSpend(owner));
  await step("show hostile Markdown", () => walk.showHostileMarkdown(owner));
  await step("look at every screen", async () => void faults.push(...(await lookAround(owner.page))));
  await step("make and revoke a key", () => walk.makeAndRevokeKey(owner));
  await step("be a member", async () => walk.signIn(member, await makeKey(url, apiKey)));
  await step("as a member, make no keys", () => expectAbsent(member.page, "/console/keys", "Make a key"));
  await step("be another tenant", async () => walk.signIn(stranger, await makeTenant(dataDir)));
  await step("as another tenant, see nothing", async () => expectEmpty(stranger.page));
  await step("sign out", () => walk.signOut(owner, url));
  for (const window of [owner, approver, member, stranger]) faults.push(...window.faults);
  for (const fault of faults) console.error(`FAULT ${fault}`);
  console.log(faults.length === 0 ? "The console works." : `${faults.length} faults.`);
  await disposables.close();
  return faults.length === 0;
}

/** Every screen in every look; returns what is wrong with them. */
async function lookAround(page: Page): Promise<string[]> {
  if (shots) await mkdir(shots, { recursive: true });
  const lists = ["documents", "runs", "calls", "agents", "workflows", "approvals?status=approved"];
  const faults: string[] = [];
  const details: string[] = [];
  for (const list of lists) {
    await page.goto(`/console/${list}`);
    const link = page.locator("tbody a").first();
    await link.waitFor();
    details.push((await link.getAttribute("href")) ?? "");
  }
  const places = ["/", ...lists.map((list) => `/console/${list}`), "/console/playground", "/console/keys", ...details];
  for (const place of places) {
    await page.goto(place);
    await page.locator("main h1").first().waitFor();
    await page.waitForLoadState("networkidle").catch(() => undefined); // a stream of events may stay open
    for (const { name, colorScheme, width } of looks) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 900 });
      faults.push(...(await findBarriers(page)).map((barrier) => `${place} (${name}): ${barrier}`));
      const overflow = await page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth",
      );
      if (Number(overflow) > 0) faults.push(`${place} (${name}): ${overflow} px too wide`);
      const file = `${
        place
          .split("?")[0]
          ?.replace(/_[0-9A-Z]{26}/, "")
          .replace(/\W+/g, "-") || "-home"
      }-${name}.png`;
      if (shots) await page.screenshot({ path: join(shots, file.replace(/^-/, "")), fullPage: true });
    }
  }
  return faults;
}

async function firstPaint(page: Page): Promise<string> {
  const paint = await page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime");
  return `first contentful paint after ${Math.round(Number(paint))} ms`;
}

async function expectAbsent(page: Page, path: string, button: string): Promise<void> {
  await page.goto(path);
  await page.locator("main h1").first().waitFor();
  if ((await page.getByRole("button", { name: button }).count()) > 0) throw new Error(`${path} has ${button}`);
}

async function expectEmpty(page: Page): Promise<void> {
  for (const screen of ["documents", "runs", "calls", "agents", "workflows", "approvals?status=approved"]) {
    await page.goto(`/console/${screen}`);
    await page.locator("p.hint[role=status]").waitFor();
    if ((await page.locator("tbody tr").count()) > 0) throw new Error(`${screen} is not empty`);
  }
}

async function makeKey(url: string, apiKey: string): Promise<string> {
  const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" };
  const body = JSON.stringify({ role: "member", subject: "mia@acme.io" });
  const response = await fetch(`${url}/keys`, { method: "POST", headers, body });
  return String(((await response.json()) as { key: string }).key); // as the API documents it
}

/** Another tenant's key, made as an operator does. */
async function makeTenant(dataDir: string): Promise<string> {
  const command = ["scripts/keys.ts", "create", "--tenant", "other", "--role", "owner", "--subject", "eve@other.io"];
  const env = { ...process.env, DATA_DIR: dataDir };
  const { stdout } = await promisify(execFile)(process.execPath, command, { env });
  return /sk_\w{32}/.exec(stdout)?.[0] ?? "";
}
