import type { FakeProvider } from "../../support/fake-provider/server.ts";
import { type ApiClient, waitForApproval } from "./api-client.ts";
import type { Window } from "./browser.ts";
import { findStrangeParts } from "./look-around.ts";

/** Runs a script wherever it is taken for markup; `place` says where that was. */
const harm = (place: string) =>
  `"'><script>window.harmed="${place}"</script><img src=x onerror=window.harmed="${place}"><svg/onload=window.harmed="${place}">`;
/** Without a place to break, and from right to left. */
const long = `${"W".repeat(40)}\u202e${"M".repeat(30)}`;
/** Longer than what is parsed as Markdown. */
const endless = "word ".repeat(50_000);
/** Links as models write them. `https://evil.example` must show as such, and the others not at all. */
const markdown = (place: string) =>
  [
    `# ${harm(place)}`,
    `![x](https://evil.example/p.png) [good](https://evil.example/a) [bad](javascript:window.harmed="${place}")`,
    "<a href='data:text/html,x' onclick='window.harmed=1'>x</a><iframe src=//evil.example></iframe><form action=//evil.example><input></form>",
    "<style>body { display: none }</style><p style='position:fixed' class=problem id=app>y</p>",
    `| ${long} | ${long} |\n|---|---|\n| ${long} | \`${long}\` |`,
    `https://evil.example/${long}`,
    "[x](https://)",
  ].join("\n\n");

const name = (place: string) => `${harm(place)} ${long}`.slice(0, 200);
const wait = { prefer: "wait=100" };
/** The name of a model may have any visible character. */
const model = `large<img/src=x/onerror=window.harmed="model">${"W".repeat(60)}`;

export type Planted = { places: string[]; widgetKey: string };

/**
 * Fills a tenant with texts that would do harm if a page took them for markup: documents, answers, results of tools, names,
 * metadata, inputs, comments, errors. Returns the places where they are shown, and a widget's key.
 */
export async function plantHostileTexts(call: ApiClient, provider: FakeProvider): Promise<Planted> {
  const models = [{ id: model, type: "chat", contextWindow: 100_000, inputUsdPerMTok: 2, outputUsdPerMTok: 6 }];
  const settings = { baseUrl: provider.url, key: "needs-none", wire: "openai-chat", models };
  await call("PUT", "/ai/providers/custom/desk", { body: settings });
  provider.setDefault({ pieces: [markdown("answer")] });
  const used = `desk/${model}`;
  const documentId = await plantDocuments(call);
  const agentId = await plantAgent(call, { provider, used });
  const { workflowId, approvals } = await plantWorkflow(call, used);
  await call("POST", "/keys", { body: { role: "member", subject: name("subject"), name: name("name").slice(0, 100) } });
  const { key } = await call("POST", "/ai/widget/key", { body: { models: [used] } });
  await call("POST", "/composite/execute", {
    body: { pattern: "consensus", profile: "general", input: markdown("composite"), models: [used, used] },
    headers: wait,
    mayFail: true,
  });
  const jobs = (await call("GET", "/jobs?limit=100")).data as { jobId: string }[]; // as the API documents it
  const logs = (await call("GET", "/ai/logs?limit=20")).data as { logId: string }[];
  const places = [
    ...[
      "/",
      "/console/runs",
      "/console/calls",
      "/console/agents",
      "/console/workflows",
      "/console/keys",
      "/console/playground",
    ],
    ...["indexed", "failed"].map((status) => `/console/documents?status=${status}`),
    ...["pending", "rejected"].map((status) => `/console/approvals?status=${status}`),
    `/console/documents/${documentId}`,
    `/console/agents/${agentId}`,
    `/console/workflows/${workflowId}`,
    ...approvals.map((id) => `/console/approvals/${id}`),
    ...jobs.map(({ jobId }) => `/console/runs/${jobId}`),
    ...logs.slice(0, 4).map(({ logId }) => `/console/calls/${logId}`),
  ];
  return { places, widgetKey: String(key) };
}

async function plantDocuments(call: ApiClient): Promise<unknown> {
  const { documentId } = await call("POST", "/rag/ingest", {
    body: {
      content: markdown("document"),
      title: name("title"),
      metadata: { note: name("value") },
    },
    headers: wait,
  });
  const broken = new FormData();
  broken.set("file", new File(["%PDF-1.7 broken"], `${harm("file").slice(0, 100)}.pdf`, { type: "application/pdf" }));
  broken.set("title", name("failed"));
  await call("POST", "/rag/ingest", { form: broken, headers: wait, mayFail: true });
  return documentId;
}

async function plantAgent(call: ApiClient, { provider, used }: { provider: FakeProvider; used: string }) {
  const tool = { id: "call_1", name: "rag_query", arguments: JSON.stringify({ query: `evil ${name("input")}` }) };
  provider.next({ toolCalls: [tool], pieces: [markdown("thought")] });
  const { agentId } = await call("POST", "/agents", {
    body: {
      name: name("agent"),
      model: used,
      systemPrompt: markdown("prompt"),
      tools: [{ type: "rag_query", config: {} }],
    },
  });
  await call("POST", `/agents/${agentId}/run`, { body: { input: markdown("question") }, headers: wait });
  provider.next({ status: 400, errorMessage: name("error"), errorCode: name("code") });
  await call("POST", `/agents/${agentId}/run`, { body: { input: name("question") }, headers: wait, mayFail: true });
  return agentId;
}

/** A workflow with two runs: in one it was decided, in the other it waits. */
async function plantWorkflow(call: ApiClient, used: string) {
  const steps = [
    { id: "draft", type: "ai_completion", model: used, prompt: "{{ input.text }}" },
    { id: "approve", type: "human_approval", assigneeRole: "admin", message: "{{ steps.draft.output }}" },
  ];
  const properties = { text: { type: "string", title: name("field"), enum: [name("choice")] } };
  const inputSchema = { type: "object", properties };
  const { workflowId } = await call("POST", "/workflows", { body: { name: name("workflow"), steps, inputSchema } });
  const approvals: unknown[] = [];
  for (const comment of [name("comment"), undefined]) {
    await call("POST", `/workflows/${workflowId}/execute`, { body: { input: { text: name("choice") } } });
    const approvalId = await waitForApproval(call);
    approvals.push(approvalId);
    const body = { decision: "rejected", comment };
    if (comment) await call("POST", `/workflows/approvals/${approvalId}/decide`, { body });
  }
  return { workflowId, approvals };
}

/** Places of the console that show none of the hostile texts: they have only models' names. */
const quiet = /^\/$|playground|calls/;

/** Looks at the places, wide and narrow; what is wrong with them. */
export async function lookAtHostileTexts(
  window: Window,
  { places, provider }: { places: string[]; provider: FakeProvider },
) {
  const { page, settle } = window;
  const faults: string[] = [];
  const look = async (place: string) => {
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 900 });
      faults.push(...(await findStrangeParts(window)).map((what) => `${place} (${width} px): ${what}`));
    }
  };
  for (const place of places) {
    await page.goto(place);
    await page.locator("main h1").first().waitFor();
    await settle();
    await page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true");
    const text = (await page.locator("main").textContent()) ?? "";
    if (!text.includes("window.harmed") && !quiet.test(place)) faults.push(`${place} does not show what was planted`);
    await look(place);
  }
  provider.next({ pieces: [markdown("playground")] });
  await page.goto("/console/playground");
  await page.getByLabel("Model").selectOption(`desk/${model}`);
  await page.getByRole("textbox", { name: "Prompt", exact: true }).fill(markdown("prompt"));
  await page.getByRole("button", { name: "Ask" }).click();
  await page.getByText("Tokens in, out").waitFor();
  await settle();
  const links = await page.locator(".markdown a").count();
  if (links !== 4) faults.push(`The answer in the playground has ${links} links`);
  await look("the playground's answer");
  return faults;
}

/** Chats in the widget, whose answer is hostile; what is wrong with how it is shown. */
export async function chatInWidget(
  { page }: Window,
  { widgetKey, provider }: { widgetKey: string; provider: FakeProvider },
) {
  provider.next({ pieces: [markdown("widget"), "\n\nThe *end*."] });
  await page.setViewportSize({ width: 390, height: 900 });
  await page.goto("/widget/demo");
  await page.getByLabel("Widget key").fill(widgetKey);
  await page.getByRole("button", { name: "Show the bubble" }).click();
  await page.getByRole("button", { name: "Open the chat" }).click();
  await page.getByLabel("Your message").fill(harm("visitor"));
  await page.getByRole("button", { name: "Send" }).click();
  const answer = page.locator(".turn.rendered", { has: page.locator("em", { hasText: "end" }) });
  await answer.waitFor();
  const markup = await answer.innerHTML();
  const tags = markup.replace(/>[^<]*/g, ">"); // without the texts, which name what they may
  const links = [...tags.matchAll(/<a [^>]*>/g)].map(([link]) => link);
  provider.next({ pieces: ["*", endless, "*"] });
  await page.getByLabel("Your message").fill("And without an end?");
  await page.getByRole("button", { name: "Send" }).click();
  await page.locator(".turn.rendered .text > pre", { hasText: "*" }).waitFor(); // as it was written
  return [
    ...(/<(?:script|img|iframe|form|input|svg|style)|\son\w+=|style=|javascript:|id=/i.test(tags)
      ? [`The widget shows ${tags}`]
      : []),
    // The one of a script leads nowhere: it has no address left.
    ...(links.length === 3 ? [] : [`The widget shows ${links.length} links`]),
    ...links.filter((link) => !link.includes("noopener")).map((link) => `The widget shows ${link}`),
    ...((await page.evaluate("window.harmed")) === undefined ? [] : ["A script has run in the widget"]),
    ...((await page.evaluate("document.documentElement.scrollWidth > innerWidth"))
      ? ["The widget widens the page"]
      : []),
  ];
}
