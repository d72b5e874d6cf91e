import { join } from "node:path";
import axe from "axe-core";
import { type Browser, type ConsoleMessage, chromium, type Page } from "playwright-core";
import type { Disposables } from "../../../src/lib/disposables.ts";
import { provideChromium } from "./provide-chromium.ts";

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
/** What anything that a page is waited for may take, in ms: also on a machine that does much else. */
const DEADLINE_MS = 120_000;
/** Lines of a window's console that are kept. */
const MAX_LINES = 200;

/** Starts a Chromium. @throws NoBrowser */
export async function openBrowser(disposables: Disposables): Promise<Browser> {
  const { executablePath, env } = provideChromium((text) => console.log(text));
  const whole = Object.fromEntries(
    Object.entries({ ...process.env, ...env }).filter(([, value]) => value !== undefined),
  );
  const browser = await chromium.launch({
    executablePath,
    args: flags,
    env: whole as Record<string, string>,
    timeout: DEADLINE_MS,
  });
  disposables.add(() => browser.close());
  return browser;
}

/** Responses that a page is to show: who has no session is asked to sign in, and what is not ready is listed. */
const expectedStatuses = [
  { status: 401, path: /^\/me$/ },
  { status: 503, path: /^\/readyz$/ },
];

type WindowOptions = {
  url: string;
  name: string;
  /** Further responses that this window's pages are to show. */
  expected?: readonly { status: number; path: RegExp }[];
};

/** A window of its own, with its own cookies, and what went wrong in it. */
export async function openWindow(browser: Browser, { url, name, expected = [] }: WindowOptions) {
  const context = await browser.newContext({ baseURL: url, viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  const faults: string[] = [];
  const lines: string[] = [];
  const note = (line: string) => {
    lines.push(line);
    if (lines.length > MAX_LINES) lines.shift();
  };
  const blame = (fault: string) => {
    note(fault);
    faults.push(`${name}: ${fault}`);
  };
  const isOwn = (address: string) => address.startsWith(`${url}/`) || address.startsWith("data:");
  const isExpected = (message: ConsoleMessage) => {
    const at = message.location().url.slice(url.length);
    return [...expectedStatuses, ...expected].some(
      ({ status, path }) => message.text().includes(`status of ${status}`) && path.test(at),
    );
  };
  page.on("console", (message) => {
    const line = `${message.type()}: ${message.text()} (${message.location().url})`;
    if (message.type() === "error" && !isExpected(message)) blame(line);
    else note(line);
  });
  page.on("pageerror", (error) => blame(`error: ${error.message}`));
  page.on("request", (request) => {
    if (!isOwn(request.url())) blame(`request to ${request.url()}`);
  });
  page.on("dialog", (dialog) => {
    if (dialog.type() !== "confirm" && dialog.type() !== "beforeunload") blame(`dialog: ${dialog.message()}`);
    void dialog.accept();
  });
  page.setDefaultTimeout(DEADLINE_MS);
  return { name, context, page, faults, lines, settle: watchLoading(page) };
}

export type Window = Awaited<ReturnType<typeof openWindow>>;

/** Returns what waits until a page has loaded all that it asked for, and has shown it. Streams of events stay open. */
function watchLoading(page: Page): () => Promise<void> {
  const open = new Set<unknown>();
  let changed: () => unknown = () => undefined;
  page.on("request", (request) => {
    if (request.resourceType() !== "eventsource") open.add(request);
  });
  for (const event of ["requestfinished", "requestfailed"] as const) {
    page.on(event as "requestfinished", (request) => {
      open.delete(request);
      changed();
    });
  }
  page.on("framenavigated", () => changed());
  const nextFrames = "new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve())))";
  return async function settle() {
    const deadline = Date.now() + DEADLINE_MS;
    for (;;) {
      await page.evaluate(nextFrames); // an effect of what has loaded asks for more
      if (open.size === 0) return;
      const left = deadline - Date.now();
      if (left <= 0) throw new Error(`The page still loads: ${open.size} requests`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        changed = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  };
}

type Finding = { id: string; impact: string | null; nodes: { html: string; failureSummary?: string }[] };

/** What axe finds that is serious, each as a line. */
export async function findBarriers(page: Page): Promise<string[]> {
  // Injected by the debugger's protocol, beside the page's policy.
  if (!(await page.evaluate("'axe' in window"))) await page.evaluate(axe.source);
  const { violations } = (await page.evaluate("axe.run()")) as { violations: Finding[] }; // as axe documents it
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes[0]?.html ?? ""} ${nodes[0]?.failureSummary ?? ""}`);
}

/** What a window showed last: the end of its console, and a picture. */
export async function showLast(
  { name, page, lines }: Window,
  { folder, step }: { folder: string; step: string },
): Promise<string> {
  const file = join(folder, `${step.replace(/\W+/g, "-")}-${name}.png`);
  const picture = await page.screenshot({ path: file, fullPage: true }).then(
    () => file,
    (error: Error) => `no picture: ${error.message}`,
  );
  return [`window ${name} at ${page.url()}, ${picture}`, ...lines.slice(-20).map((line) => `  ${line}`)].join("\n");
}
