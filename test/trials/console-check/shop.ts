import { mkdir } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import type { Disposables } from "../../../src/lib/disposables.ts";
import type { FakeProvider } from "../../support/fake-provider/server.ts";
import type { ApiClient } from "./api-client.ts";
import { findBarriers } from "./browser.ts";
import { MODEL } from "./walk.ts";

const question = "When is the pump bled before the heating season?";
const manual = "# P-100\n\nBleed the pump before each heating season. Open the valve until no air comes.";

/** An answer with a source, a numbered list, a table, code, and links that nobody allowed. */
export const drawn = `Before each season [1: "Bleed the pump before each heating season"].

1. Close the mains
2. Open the valve
   - until no air comes

| Part | Torque |
|---|---|
| Valve | 12 Nm |

\`\`\`sh
pump --bleed --until-no-air --and-write-a-long-line-that-must-scroll-in-its-own-box
\`\`\`

[Elsewhere](https://evil.example/login) ![x](https://evil.example/x.png)`;

/** A page of another origin, whose policy lets it load nothing but the widget of the platform at `url`. */
export async function openShop(disposables: Disposables, url: string) {
  const policy = `default-src 'none'; script-src ${url}; connect-src ${url}`;
  const headers = { "content-type": "text/html; charset=utf-8", "content-security-policy": policy };
  const shop = createServer((request, response) => {
    const attributes = new URL(request.url ?? "/", "http://shop").searchParams.get("with") ?? "";
    const script = `<script src="${url}/widget.js" ${attributes} async></script>`;
    response.writeHead(200, headers);
    response.end(
      `<!doctype html><html lang="en"><title>Shop</title><main><h1>Shop</h1><p>Pumps.</p></main>${script}</html>`,
    );
  });
  await new Promise<void>((resolve) => void shop.listen(0, "127.0.0.1", resolve));
  disposables.add(() => {
    shop.close();
    shop.closeAllConnections();
  });
  const origin = `http://127.0.0.1:${(shop.address() as AddressInfo).port}`;
  return { origin, addressOf: (attributes: string) => `${origin}/?with=${encodeURIComponent(attributes)}` };
}

export type Look = { colorScheme?: "light" | "dark"; width?: number };

/** Opens an address, and notes what the page's console says and which origins it asks. */
export async function visit(browser: Browser, address: string, { colorScheme = "light", width = 1_000 }: Look = {}) {
  const context = await browser.newContext({ viewport: { width, height: 760 }, colorScheme });
  const page = await context.newPage();
  const errors: string[] = [];
  const asked = new Set<string>();
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("request", (request) => asked.add(new URL(request.url()).origin));
  await page.goto(address);
  return { page, errors, asked, leave: () => context.close() };
}

/** Asks in the chat, which is opened if it is not. */
export async function askWidget(page: Page, text = question): Promise<void> {
  const field = page.locator("textarea");
  await field.waitFor({ state: "attached" });
  if (!(await field.isVisible())) await page.locator("button.bubble").click();
  await field.fill(text);
  await page.locator("form button").click();
}

/** Uses the widget as visitors of a shop do, in each look, and as its author does with keys that are refused. What is wrong. */
export async function visitShop(
  browser: Browser,
  { disposables, url, call, provider, pictures }: Visiting,
): Promise<string[]> {
  const { origin, addressOf } = await openShop(disposables, url);
  const faults: string[] = [];
  await call("POST", "/rag/ingest", { body: { title: "Pump manual", content: manual, collection: "shop" } });
  const makeKey = async (body: object) =>
    String((await call("POST", "/ai/widget/key", { body: { collections: ["shop"], models: [MODEL], ...body } })).key);
  const look = async (name: string, key: string, { shows, ...as }: Look & { shows: string }) => {
    const { page, errors, asked, leave } = await visit(browser, addressOf(`data-key="${key}"`), as);
    await askWidget(page);
    await page.locator(".panel", { hasText: shows }).waitFor();
    if (pictures) {
      await mkdir(pictures, { recursive: true });
      await page.screenshot({ path: join(pictures, `widget-${name}.png`) });
    }
    const foreign = [...asked].filter((one) => one !== origin && one !== url);
    faults.push(...[...(await findBarriers(page)), ...foreign].map((what) => `the widget, ${name}: ${what}`));
    if (await page.evaluate("document.documentElement.scrollWidth > innerWidth"))
      faults.push(`the widget, ${name}: it widens the page`);
    await page.reload();
    await page.locator(".panel", { hasText: question }).waitFor(); // it was kept
    await leave();
    return errors;
  };
  const key = await makeKey({ allowedOrigins: [origin] });
  const looks = { light: {}, dark: { colorScheme: "dark" }, narrow: { width: 390 } } as const;
  for (const [name, as] of Object.entries(looks)) {
    provider.next({ pieces: [drawn] });
    const errors = await look(name, key, { ...as, shows: "Pump manual" });
    faults.push(...errors.map((error) => `the widget, ${name}: ${error}`));
  }
  const refused = {
    "wrong-key": "pk_00000000000000000000000000000000",
    "wrong-origin": await makeKey({ allowedOrigins: ["https://else.example"] }),
  };
  for (const [name, wrong] of Object.entries(refused)) {
    const errors = await look(name, wrong, { shows: "not available here" });
    if (!errors.some((error) => error.includes("allowedOrigins"))) faults.push(`${name}: the author is told nothing`);
  }
  await look("budget", await makeKey({ monthlyBudgetUsd: 1e-6 }), { shows: "reached its limit" });
  return faults;
}

type Visiting = {
  disposables: Disposables;
  url: string;
  call: ApiClient;
  provider: FakeProvider;
  pictures?: string | undefined;
};
