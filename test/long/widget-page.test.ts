import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import type { Browser, Page } from "playwright-core";
import { type Disposables, withDisposables } from "../../src/lib/disposables.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { skipTest } from "../support/skip-test.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { findBarriers, openBrowser } from "../trials/console-check/browser.ts";
import { askWidget, drawn, type Look, openShop, visit } from "../trials/console-check/shop.ts";

/** Set it to keep a picture of each look there. */
const shots = process.env.SHOTS;
const MODEL = "scribe/small";
const manual = "# P-100\n\nBleed the pump before each heating season. Open the valve until no air comes.";

/** The computed values of these properties of a part of the widget. */
const styleOf = (page: Page, selector: string, names: string[]) =>
  page.evaluate(`(() => {
    const style = getComputedStyle(document.body.lastElementChild.shadowRoot.querySelector(${JSON.stringify(selector)}));
    return ${JSON.stringify(names)}.map((name) => style[name]);
  })()`);

describe("the widget on a page of another origin", function () {
  this.timeout(120_000);
  let test: TestPlatform;
  let upstream: FakeProvider;
  let shop: Awaited<ReturnType<typeof openShop>>;
  let admin: ApiClient;
  let browser: Browser;
  let closing: Disposables | undefined;
  before(async function () {
    if (!process.env.CHROMIUM && !existsSync("/usr/bin/chromium")) skipTest(this, "there is no Chromium");
    upstream = await startFakeProvider();
    test = await startPlatform({ env: { FETCH_ALLOW_ORIGINS: upstream.origin } });
    admin = makeClient({ url: test.url, key: test.keys.owner });
    const provider = {
      baseUrl: upstream.url,
      key: "sk-scribe-0123456789abcdef",
      wire: "openai-chat",
      models: [{ id: "small", type: "chat", contextWindow: 32_000, inputUsdPerMTok: 3, outputUsdPerMTok: 5 }],
    };
    await admin.request("PUT", "/ai/providers/custom/scribe", { body: provider });
    const content = manual;
    expect((await admin.post("/rag/ingest", { title: "Pump manual", content, collection: "site" })).status).to.be.below(
      300,
    );
    await withDisposables(async (disposables) => {
      browser = await openBrowser(disposables);
      shop = await openShop(disposables, test.url);
      closing = disposables;
    });
  });
  beforeEach(() => upstream?.reset());
  after(async () => {
    await closing?.close();
    await test?.close();
    await upstream?.close();
  });

  const makeKey = async (body: object = {}) =>
    (
      await admin.post("/ai/widget/key", {
        collections: ["site"],
        models: [MODEL],
        allowedOrigins: [shop.origin],
        ...body,
      })
    ).string("key");
  const open = async (attributes: string, look: Look = {}) => {
    const visited = await visit(browser, shop.addressOf(attributes), look);
    visited.page.setDefaultTimeout(30_000);
    return visited;
  };
  const picture = async (page: Page, name: string) => {
    if (!shots) return;
    await mkdir(shots, { recursive: true });
    await page.screenshot({ path: join(shots, `widget-${name}.png`) });
  };

  it("shows an answer with its source, lists, a table and code, in light, dark and narrow", async () => {
    upstream.setDefault({ pieces: [drawn] });
    const key = await makeKey();
    const looks = [
      { name: "light", width: 1_000 },
      { name: "dark", colorScheme: "dark", width: 1_000 },
      { name: "narrow", width: 390 },
    ] as const;
    for (const { name, ...look } of looks) {
      const { page, errors, asked, leave } = await open(`data-key="${key}" data-title="Ask us"`, look);
      await askWidget(page);
      const answer = page.locator(".turn.rendered", { has: page.locator(".sources") });
      await answer.locator("table").waitFor(); // Markdown is shown a frame after the sources
      expect(await answer.locator(".sources li").textContent()).to.match(
        /Pump manual.*P-100\s*.?Bleed the pump before each/s,
      );
      expect(await answer.locator("ol > li, ul > li").count()).to.equal(4);
      expect(await answer.locator("td").allInnerTexts()).to.deep.equal(["Valve", "12 Nm"]);
      expect(await answer.locator("pre").textContent()).to.contain("pump --bleed");
      expect(await answer.locator("a").count(), "links that nobody allowed").to.equal(0);
      const styles = await styleOf(page, ".rendered .text ol > li", ["backgroundColor", "display"]);
      expect(styles).to.deep.equal(["rgba(0, 0, 0, 0)", "list-item"]);
      const widens = await page.evaluate("document.documentElement.scrollWidth > innerWidth");
      expect(widens, "the widget widens the page").to.equal(false);
      await answer.locator(".text ol").scrollIntoViewIfNeeded();
      await picture(page, name);
      expect(await findBarriers(page)).to.deep.equal([]);
      expect(errors).to.deep.equal([]);
      expect(asked).to.deep.equal(new Set([shop.origin, new URL(test.url).origin]));
      await leave();
    }
  });

  it("shows the greeting and an answer at once, and as Markdown when its renderer has come", async () => {
    upstream.setDefault({ pieces: ['Before **each** season [1: "Bleed the pump before"].'] });
    const { page, leave } = await open(`data-key="${await makeKey()}"`);
    const held = Promise.withResolvers<void>();
    await page.route("**/widget/files/safe-markdown.js", (route) => held.promise.then(() => route.continue()));
    await askWidget(page);
    await page.locator(".turn:not(.rendered)", { has: page.locator(".sources") }).waitFor();
    expect(await page.locator(".turn").allInnerTexts()).to.have.lengthOf(3);
    held.resolve();
    await page.locator(".turn.rendered strong", { hasText: "each" }).waitFor();
    expect(await page.locator(".turn").allInnerTexts()).to.have.lengthOf(3);
    await leave();
  });

  it("keeps the conversation over a reload, until a new one is begun", async () => {
    upstream.setDefault({ pieces: ['Before each season [1: "Bleed the pump before"].'] });
    const { page, leave } = await open(`data-key="${await makeKey()}"`);
    await askWidget(page);
    await page.locator(".sources").waitFor();
    await page.reload();
    await page.locator(".sources").waitFor();
    expect(await page.locator(".turn").allInnerTexts()).to.have.lengthOf(3);
    await picture(page, "reload");
    await askWidget(page, "And how is the pump bled before the heating season?");
    await page.locator(".sources").nth(1).waitFor();
    const { messages } = (upstream.requests.at(-1)?.body ?? {}) as { messages: { role: string }[] };
    expect(messages.map(({ role }) => role)).to.deep.equal(["system", "user", "assistant", "user"]);
    await page.getByRole("button", { name: "New conversation" }).click();
    await page.reload();
    await page.locator(".turn").first().waitFor();
    expect(await page.locator(".turn").allInnerTexts()).to.have.lengthOf(1);
    await leave();
  });

  it("has colours, a side, a language and texts of the page's own", async () => {
    const attributes = `data-key="${await makeKey()}" data-color="#7a1f5c" data-side="left" data-lang="de" data-theme="dark" data-greeting="Servus!"`;
    const { page, leave } = await open(attributes);
    await page.getByRole("button", { name: "Chat öffnen: Chat" }).click();
    expect(await page.locator(".turn").textContent()).to.equal("Servus!");
    expect(await page.locator("textarea").getAttribute("placeholder")).to.equal("Nachricht schreiben…");
    const bubble = await styleOf(page, "button.bubble", ["left", "backgroundColor"]);
    expect(bubble).to.deep.equal(["20px", "rgb(122, 31, 92)"]);
    await askWidget(page, "Which zeppelin insurance do astronauts prefer?");
    await page.getByText("Dazu habe ich in den Dokumenten nichts gefunden.").waitFor();
    await picture(page, "own");
    await leave();
  });

  it("tells the page's author of a refused key, of a refused origin and of a missing key, and the visitor of a budget", async () => {
    const refusals = [
      ["wrong-key", 'data-key="pk_00000000000000000000000000000000"', /unknown.*401.*allowedOrigins/],
      [
        "wrong-origin",
        `data-key="${await makeKey({ allowedOrigins: ["https://else.example"] })}"`,
        /allowedOrigins.*403/,
      ],
    ] as const;
    for (const [name, attributes, told] of refusals) {
      const { page, errors, leave } = await open(attributes);
      await askWidget(page);
      await page.getByText("This chat is not available here.").waitFor();
      expect(errors.join("\n")).to.match(told).and.contain(shop.origin).and.not.contain("CORS");
      await picture(page, name);
      await leave();
    }
    const { errors, page: without } = await open("");
    await without.waitForLoadState("networkidle");
    expect(errors.join("\n")).to.contain("data-key is missing");
    upstream.setDefault({ pieces: ["Yes [1]."], usage: { prompt_tokens: 1_000, completion_tokens: 1_000 } });
    const { page, leave } = await open(`data-key="${await makeKey({ monthlyBudgetUsd: 0.008, maxTokens: 300 })}"`);
    await askWidget(page);
    await page.locator(".sources").waitFor();
    await askWidget(page, "How is the pump bled before the heating season?");
    await page.getByText("This chat has reached its limit for now.").waitFor();
    await picture(page, "budget");
    await leave();
  });
});
