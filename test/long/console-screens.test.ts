import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import type { Page } from "playwright-core";
import { type Disposables, withDisposables } from "../../src/lib/disposables.ts";
import { makeClient } from "../support/http-client.ts";
import { skipTest } from "../support/skip-test.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";
import { findBarriers, openBrowser, openWindow, type Window } from "../trials/console-check/browser.ts";

const PASSWORD = "operator-token-of-the-tests";
/** Markup, an attribute's end, a template, text that runs backwards, and a word that has no place to break. */
const hostile = (what: string) =>
  `${what} <img src=x onerror="window.hit=1">"'><script>window.hit=1</script>\u202e{{7*7}} ${"W".repeat(100)}`;
/** Set it to keep a picture of each screen there. */
const shots = process.env.SHOTS;

describe("the console's screens, with names that others chose", function () {
  this.timeout(120_000);
  let test: TestPlatform;
  let window: Window;
  let closing: Disposables | undefined;
  before(async function () {
    // `npm run console-check` installs one.
    if (!process.env.CHROMIUM && !existsSync("/usr/bin/chromium")) skipTest(this, "there is no Chromium");
    test = await startPlatform();
    await withDisposables(async (disposables) => {
      // On a machine that does much else, the store may not answer in time.
      const expected = [
        { status: 401, path: /^\/operator\// },
        { status: 503, path: /^\// },
      ];
      window = await openWindow(await openBrowser(disposables), { url: test.url, name: "names", expected });
      window.page.setDefaultTimeout(45_000);
      closing = disposables;
    });
    const tenantId = await tenantOf(test);
    await test.platform.tenancy.ensureTenant(hostile("tenant"));
    const owner = makeClient({ url: test.url, key: test.keys.owner });
    const key = await owner.post("/keys", { subject: hostile("subject").slice(0, 100), name: "<b>key</b>" });
    const counters = { requests: 3, errors: 1, inputTokens: 5, outputTokens: 7, costNanoUsd: 9_000_000 };
    const day = new Date().toISOString().slice(0, 10);
    const hour = new Date().toISOString().slice(0, 13);
    const place = { model: hostile("model"), surface: hostile("surface"), keyId: key.string("keyId") };
    await test.platform.store.usage.add({ writer: "wnames", number: 1 }, [
      {
        tenantId,
        day,
        ...place,
        inHour: { hour, ...place },
        endUser: hostile("user"),
        ...counters,
        times: { ms20: 3 },
      },
    ]);
    const { page } = window;
    await page.goto("/");
    await page.getByLabel("Your API key").fill(test.keys.owner);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("link", { name: "Usage" }).waitFor();
  });
  after(async () => {
    await closing?.close();
    await test?.close();
  });

  const look = async (page: Page, name: string) => {
    expect(await page.evaluate("window.hit"), `${name}: a script ran`).to.equal(undefined);
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      expect(await findBarriers(page), `${name}, ${colorScheme}`).to.deep.equal([]);
    }
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 900 });
      const wide = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
      expect(wide, `${name} at ${width} px is wider than the screen`).to.be.at.most(0);
      if (shots === undefined) continue;
      await mkdir(shots, { recursive: true });
      await page.screenshot({ path: join(shots, `${name.replace(/\W+/g, "-")}-${width}.png`), fullPage: true });
    }
    await page.setViewportSize({ width: 1280, height: 900 });
  };

  it("Usage shows them as text, by each grouping", async () => {
    const { page } = window;
    await page.getByRole("link", { name: "Usage" }).click();
    for (const [group, text] of [
      ["model", "model <img"],
      ["key", "<b>key</b>"],
      ["surface", "surface <img"],
      ["subject", "user <img"],
    ] as const) {
      await page.getByLabel("Group by").selectOption(group);
      await page.getByRole("cell", { name: text }).waitFor();
      await look(page, `usage by ${group}`);
    }
    await page.getByLabel("Range").selectOption("day");
    await page.getByLabel("Compare with the time before").check();
    await page.getByLabel("Group by").selectOption("model");
    await page.getByRole("link", { name: "model <img" }).click();
    await page.getByText("Only model").waitFor();
    await look(page, "usage of one model in a day, beside the day before");
    expect(window.faults).to.deep.equal([]);
  });

  it("an agent's page shows its versions, and restores one", async () => {
    const { page } = window;
    const owner = makeClient({ url: test.url, key: test.keys.owner });
    const agent = { name: hostile("agent").slice(0, 200), model: "meta-llm", systemPrompt: "The first prompt." };
    const made = await owner.post("/agents", agent);
    const path = `/agents/${made.string("agentId")}`;
    await owner.request("PUT", path, { body: { ...agent, systemPrompt: "The second prompt." } });
    await page.goto(`/console${path}`);
    await page.getByRole("button", { name: "Show version 1" }).click();
    await page.locator("pre", { hasText: "The first prompt." }).first().waitFor();
    const changes = (await page.getByLabel("What has changed since").textContent()) ?? "";
    expect(changes.split("\n"), "each line stands by itself").to.include.members([
      '−   "systemPrompt": "The first prompt.",',
      '+   "systemPrompt": "The second prompt.",',
    ]);
    await look(page, "versions of an agent");
    await page.getByRole("button", { name: "Restore version 1" }).click();
    await page.getByRole("button", { name: "Show version 3" }).waitFor();
    expect((await owner.get(path)).body).to.include({ version: 3, systemPrompt: "The first prompt." });
    expect(window.faults).to.deep.equal([]);
  });

  it("the search opens the page of any id", async () => {
    const { page } = window;
    const owner = makeClient({ url: test.url, key: test.keys.owner });
    const response = await owner.post("/v1/responses", { model: "meta-llm", input: "A walrus" });
    const form = new FormData();
    form.set("purpose", "batch");
    form.set("file", new Blob(["{}"]), "walrus.jsonl");
    const file = await owner.request("POST", "/v1/files", { raw: form });
    const about = { input_file_id: file.string("id"), endpoint: "/v1/embeddings", completion_window: "24h" };
    const batch = await owner.post("/v1/batches", about);
    const requests = [{ custom_id: "walrus", params: { model: "meta-llm", max_tokens: 20, messages: [] } }];
    const messages = await owner.post("/v1/messages/batches", { requests });
    const steps = [{ type: "human_approval", assigneeRole: "owner", message: "A walrus" }];
    const workflow = await owner.post("/workflows", { name: "Walrus", steps });
    const started = await owner.post(`/workflows/${workflow.string("workflowId")}/execute`, {});
    for (const [id, heading, text] of [
      [response.string("id"), "Response", "completed"],
      [file.string("id"), "File", "walrus.jsonl"],
      [batch.string("id"), "Batch", file.string("id")],
      [messages.string("id"), "Batch of messages", "message_batch"],
      [started.string("runId"), "Walrus", started.string("runId")],
    ] as const) {
      await page.goto("/console/keys");
      await page.getByLabel("Open an id").fill(id);
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { level: 1, name: heading }).waitFor();
      await page.locator("main").getByText(text).first().waitFor();
    }
    await page.getByLabel("Open an id").fill("req_none");
    await page.keyboard.press("Enter");
    await page.getByText("No id that has a page here.").waitFor();
    expect(window.faults).to.deep.equal([]);
  });

  it("the runs on a collection's documents are reached from it and from a document, and stay live", async () => {
    const { page } = window;
    const owner = makeClient({ url: test.url, key: test.keys.owner });
    const ingest = (collection: string, title: string) =>
      owner.post("/rag/ingest", { content: `The ${title} swims.`, title, collection });
    await ingest("walruses", "Old walrus");
    await ingest("default", "Old seal");
    await page.goto("/console/documents?collection=walruses");
    await page.getByRole("link", { name: "Old walrus" }).click();
    await page.getByRole("link", { name: "all of them" }).click();
    await page.getByText("On the document Old walrus").waitFor();
    await page.locator("td.what").filter({ hasText: "Old walrus" }).waitFor();
    await page.goBack();
    await page.getByRole("link", { name: "its runs" }).click();
    await page.getByText("On documents of the collection walruses").waitFor();
    const rows = page.locator("td.what");
    await rows.filter({ hasText: "Old walrus" }).waitFor();
    await ingest("default", "Young seal");
    await ingest("walruses", "Young walrus");
    await rows.filter({ hasText: "Young walrus" }).waitFor();
    expect((await rows.allInnerTexts()).join()).not.to.include("seal");
    await look(page, "runs on a collection");
    await page.getByRole("link", { name: "Young walrus" }).click();
    await page.locator(".facts").getByRole("link", { name: "walruses" }).click();
    await page.getByRole("link", { name: "Runs on documents of walruses" }).click();
    await rows.filter({ hasText: "Old walrus" }).waitFor();
    await page.getByLabel("Status").selectOption("failed");
    const retry = page.getByRole("button", {
      name: "Retry all failed jobs of the kind ingestion on documents of walruses",
    });
    await retry.click();
    await page.getByText("0 started again, 0 skipped.").waitFor();
    expect(window.faults).to.deep.equal([]);
  });

  it("Operator shows them as text, by a session that no script reads, and ends it", async () => {
    const { page } = window;
    await page.goto("/console/operator");
    const password = page.getByLabel("The operator's password");
    await password.fill("not-the-password");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").waitFor();
    await look(page, "operator before sign-in");
    await password.fill(PASSWORD);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("cell", { name: /^tenant <img/ }).waitFor();
    await page.getByText("ingestion 4").waitFor();
    await look(page, "operator");
    expect(await page.evaluate("document.cookie + Object.keys(localStorage) + Object.keys(sessionStorage)")).to.equal(
      "",
    );
    const [board] = await Promise.all([
      window.context.waitForEvent("page"),
      page.getByRole("link", { name: "Bull Board" }).click(),
    ]);
    await board.getByText("composite-runs").first().waitFor();
    await board.close();
    await page.getByLabel("Name, as it is").fill("second");
    await page.getByRole("button", { name: "Find" }).click();
    await page.getByRole("cell", { name: /^tenant <img/ }).waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Sign out" }).click();
    await password.waitFor();
    await page.goto("/console/usage");
    await page.getByRole("heading", { name: "Usage" }).waitFor();
    expect(window.faults).to.deep.equal([]);
  });
});
