import { existsSync } from "node:fs";
import axe from "axe-core";
import { type Browser, chromium, type Page } from "playwright-core";
import type { Disposables } from "../../src/disposables.ts";

/** Where Debian's package `chromium` puts it. */
const EXECUTABLE = "/usr/bin/chromium";
/** Without these it looks for servers of its maker at every start. */
const flags = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export class NoBrowser extends Error {}

/** Starts Debian's Chromium. @throws NoBrowser */
export async function openBrowser(disposables: Disposables): Promise<Browser> {
  if (!existsSync(EXECUTABLE)) throw new NoBrowser(`There is no ${EXECUTABLE}: apt-get install chromium`);
  const browser = await chromium.launch({ executablePath: EXECUTABLE, args: flags });
  disposables.add(() => browser.close());
  return browser;
}

/** A window of its own, with its own cookies, and what went wrong in it. */
export async function openWindow(browser: Browser, url: string) {
  const context = await browser.newContext({ baseURL: url, viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  const faults: string[] = [];
  const isOwn = (address: string) => address.startsWith(url) || address.startsWith("data:");
  page.on("console", (message) => {
    // A response of 401 before sign-in, and one that says what is not ready yet, are no faults of the page.
    if (message.type() === "error" && !/status of (?:401|503)/.test(message.text()))
      faults.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (!isOwn(request.url())) faults.push(`request to ${request.url()}`);
  });
  page.on("dialog", (dialog) => void dialog.accept());
  page.setDefaultTimeout(30_000);
  return { context, page, faults };
}

export type Window = Awaited<ReturnType<typeof openWindow>>;

type Finding = { id: string; impact: string | null; nodes: { html: string; failureSummary?: string }[] };

/** What axe finds that is serious, each as a line. */
export async function findBarriers(page: Page): Promise<string[]> {
  // Injected by the debugger's protocol, beside the page's policy.
  await page.evaluate(axe.source);
  const { violations } = (await page.evaluate("axe.run()")) as { violations: Finding[] }; // as axe documents it
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes[0]?.html ?? ""} ${nodes[0]?.failureSummary ?? ""}`);
}
