import { pollUntil } from "../../support/poll-until.ts";
import { endSession } from "./api-client.ts";
import type { Window } from "./browser.ts";
import type { Desk } from "./desk.ts";
import { MODEL } from "./walk.ts";

/** The forms of agents and workflows: what they hold, what they warn of, and what becomes of what was typed. */

type Page = Window["page"];

/** The draft of the page, as its JSON. */
async function readDraft(page: Page): Promise<{ steps: Record<string, unknown>[] } & Record<string, unknown>> {
  await page.getByLabel("Edit as").selectOption("json");
  const text = await page.getByLabel("Definition").inputValue();
  await page.getByLabel("Edit as").selectOption("form");
  return JSON.parse(text); // as the form writes it
}

function mustEqual(found: unknown, expected: unknown): void {
  const [is, wanted] = [JSON.stringify(found), JSON.stringify(expected)];
  if (is !== wanted) throw new Error(`It is ${is}, not ${wanted}`);
}

/** Adds steps, nests them, moves them and takes one out; a mistake in CEL is told of as it is typed. */
export async function nestSteps({ page }: Window): Promise<void> {
  await page.goto("/console/workflows");
  await page.getByLabel("Name of the workflow").fill("Nested");
  const at = (id: string) => page.getByRole("group").filter({ has: page.locator("legend code", { hasText: id }) });
  const choose = (label: string, type: string) =>
    page.getByRole("combobox", { name: label, exact: true }).selectOption(type);
  const add = async (label: string, type: string, id: string) => {
    await choose(label, type);
    await page
      .getByRole("group")
      .filter({ hasNot: page.locator("legend code") })
      .filter({ has: page.locator("legend", { hasText: type.replaceAll("_", " ") }) })
      .last()
      .getByLabel("Id", { exact: true })
      .first()
      .fill(id);
  };
  await add("Add a step", "for_each", "each");
  await at("each").locator(".problem", { hasText: "steps[2].do" }).first().waitFor(); // it holds no step yet
  await add("Add a step", "set", "note");
  await page.getByRole("button", { name: "Put into the step before: note 4" }).click();
  const items = at("each").getByLabel("items, in CEL");
  await items.fill("input.complaint.foo(");
  await at("each").locator(".problem", { hasText: "steps[2].items" }).first().waitFor();
  await items.fill("[1, 2]");
  await add("Add a step", "parallel", "both");
  await choose("Add a step to steps[3].branches.first", "wait");
  await choose("Add a step to steps[3].branches.second", "wait");
  await page.getByRole("button", { name: "Move up both 4" }).click();
  await page.getByRole("button", { name: "Move down both 3" }).click();
  await page.locator(".flow .branches .flow b", { hasText: "note" }).waitFor();
  const nested = await readDraft(page);
  mustEqual(nested.steps.slice(2), [
    { type: "for_each", items: "[1, 2]", do: [{ type: "set", values: {}, id: "note" }], id: "each" },
    {
      type: "parallel",
      branches: { first: [{ type: "wait", ms: 60_000 }], second: [{ type: "wait", ms: 60_000 }] },
      id: "both",
    },
  ]);
  await page.getByRole("button", { name: "Take out note 1" }).click();
  mustEqual(
    (await readDraft(page)).steps.map(({ id }) => id),
    ["draft", "approve", "each", "note", "both"],
  );
  await page.getByRole("button", { name: "Put into the step before: note 4" }).click();
  await page.locator(".problems").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name: "Nested" }).waitFor();
}

/** Tries the draft of that workflow, which no run shows afterwards. */
export async function tryDraft({ page }: Window): Promise<void> {
  await page.goto("/console/workflows");
  await page.getByRole("link", { name: "Nested" }).click();
  await page.getByLabel("Prompt", { exact: true }).first().fill("Answer: {{ input.complaint }}");
  await page.getByText("Try the draft, with stubs for what it calls").click();
  const trial = page.locator("details", { hasText: "Try the draft" });
  await trial.getByLabel("complaint").fill("It is loud.");
  await trial.getByRole("button", { name: "Try it" }).click();
  await trial.locator("h3 .badge", { hasText: "completed" }).waitFor();
  await trial.locator(".calls li", { hasText: "Answer: It is loud." }).first().waitFor();
  await page.getByText("It has not run yet.").waitFor();
  await page.getByRole("button", { name: "Discard the draft" }).click();
  await page.getByRole("button", { name: "Discard the draft" }).waitFor({ state: "detached" });
}

/** Counts the tokens of a prompt, and names a field that nothing knows before it is saved. */
export async function warnBeforeSaving({ page }: Window): Promise<void> {
  await page.goto("/console/agents");
  await page.getByLabel("Its model").selectOption(MODEL);
  await page.getByLabel("Its prompt").fill("You answer in one sentence, and say where you know it from.");
  await page.getByText(/^\d+ tokens in each call$/).waitFor();
  await page.getByLabel("Edit as").selectOption("json");
  const field = page.getByLabel("Definition");
  const draft = JSON.parse(await field.inputValue());
  await field.fill(JSON.stringify({ ...draft, colour: "red", tools: [{ type: "rag_query", config: { top: 3 } }] }));
  const note = page.locator(".problem", { hasText: "Not known:" });
  await note.getByText("colour").waitFor();
  await note.getByText("tools[0].config.top").waitFor();
  const asked = page.waitForEvent("dialog"); // which is accepted
  await page.getByRole("button", { name: "Create" }).click();
  const question = (await asked).message();
  if (!question.includes("tools[0].config.top, colour")) throw new Error(`Saving asks ${question}`);
  await page.locator(".problem[role=alert]").first().waitFor(); // the API refuses what the reader was warned of
  await page.getByRole("button", { name: "Discard the draft" }).click();
}

/** Somebody saves another version meanwhile: both texts are shown, and the reader's own is saved if they say so. */
export async function settleConflict({ page }: Window, { call }: Desk): Promise<void> {
  const about = { name: "Contested", model: MODEL, systemPrompt: "The first.", tools: [] };
  const { agentId } = await call("POST", "/agents", { body: about });
  await page.goto(`/console/agents/${agentId}`);
  await page.getByLabel("Its prompt").fill("Mine.");
  await call("PUT", `/agents/${agentId}`, { body: { ...about, systemPrompt: "Theirs." } });
  await page.getByRole("button", { name: "Save as version 2" }).click();
  await page.getByRole("heading", { name: "Version 2 was saved meanwhile" }).waitFor();
  await page.getByLabel("Theirs", { exact: true }).getByText("Theirs.").waitFor();
  await page.getByLabel("Yours", { exact: true }).getByText("Mine.").waitFor();
  await page.getByLabel("From theirs to yours").getByText('+   "systemPrompt": "Mine."').waitFor();
  await page.getByRole("button", { name: "Save yours as version 3" }).click();
  await page.getByRole("button", { name: "Save as version 4" }).waitFor();
  mustEqual((await call("GET", `/agents/${agentId}`)).systemPrompt, "Mine.");
  await page.getByLabel("Its prompt").fill("Mine again.");
  await call("PUT", `/agents/${agentId}`, { body: { ...about, systemPrompt: "Theirs again." } });
  await page.reload(); // the draft stays, and with it what it began with
  await page.getByRole("button", { name: "Save as version 5" }).click();
  await page.getByRole("button", { name: "Take theirs" }).click();
  await page.getByRole("button", { name: "Discard the draft" }).waitFor({ state: "detached" });
  mustEqual(await page.getByLabel("Its prompt").inputValue(), "Theirs again.");
}

/** What was typed into a form outlives a reload and a session that ends. */
export async function keepForms(window: Window, { url, apiKey, call }: Desk): Promise<void> {
  const { page, context } = window;
  const about = { name: "Kept", model: MODEL, systemPrompt: "The first.", tools: [] };
  const { agentId } = await call("POST", "/agents", { body: about });
  const schema = { type: "object", properties: { complaint: { type: "string" } } };
  const steps = [{ id: "end", type: "set", values: { a: 1 } }];
  const { workflowId } = await call("POST", "/workflows", { body: { name: "Kept", inputSchema: schema, steps } });
  await page.goto(`/console/workflows/${workflowId}`);
  await page.getByLabel("complaint (optional)").first().fill("It is");
  await page.getByLabel("Name of the workflow").fill("Kept well");
  await page.reload();
  mustEqual(await page.getByLabel("complaint (optional)").first().inputValue(), "It is");
  mustEqual(await page.getByLabel("Name of the workflow").inputValue(), "Kept well");
  await page.goto(`/console/agents/${agentId}`);
  await page.getByLabel("Question").fill("When is");
  await page.getByLabel("Its prompt").fill("The second.");
  await endSession(url, "/session", await context.cookies());
  await page.getByRole("button", { name: "Save as version 2" }).click();
  await signInAgain(page, apiKey);
  mustEqual(await page.getByLabel("Question").inputValue(), "When is");
  await page.reload();
  mustEqual(await page.getByLabel("Question").inputValue(), "When is");
  mustEqual(await page.getByLabel("Its prompt").inputValue(), "The second.");
  await page.getByRole("button", { name: "Save as version 2" }).click();
  await page.getByRole("button", { name: "Save as version 3" }).waitFor();
  mustEqual(await page.getByLabel("Question").inputValue(), "When is"); // which the saving has not sent
  await page.getByLabel("Question").fill("");
}

async function signInAgain(page: Page, apiKey: string): Promise<void> {
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Your API key").fill(apiKey);
  await dialog.getByRole("button", { name: "Sign in" }).click();
  await dialog.waitFor({ state: "detached" });
}

/** Schedules, triggers and webhooks: what was typed into their forms outlives both too, and is then made. */
export async function keepSchedules({ page, context }: Window, { url, apiKey, call, provider }: Desk): Promise<void> {
  const steps = [{ id: "end", type: "set", values: { a: 1 } }];
  const { workflowId } = await call("POST", "/workflows", { body: { name: "Started", steps } });
  const target = { workflowId };
  const forms = [
    { what: "schedule", body: { name: "Nightly reading", cron: "0 3 * * *", timezone: "UTC", target } },
    { what: "trigger", body: { event: "pump.stopped", target } },
    { what: "webhook", body: { url: `${provider.origin}/told`, events: ["budget.exhausted"] } }, // which nothing here does
  ].map(({ what, body }) => {
    const form = page.locator("details", { hasText: `Make a ${what}` });
    return { form, field: form.getByLabel("As JSON"), text: JSON.stringify(body, null, 2) };
  });
  const mustBeKept = async () => {
    for (const { field, text } of forms) mustEqual(await field.inputValue(), text);
  };
  await page.goto("/console/schedules");
  for (const { form, field, text } of forms) {
    await form.locator("summary").click();
    await field.fill(text);
  }
  await endSession(url, "/session", await context.cookies());
  const [schedule] = forms;
  await schedule?.form.getByRole("button", { name: "Make it" }).click();
  await signInAgain(page, apiKey);
  await mustBeKept();
  await page.reload();
  await mustBeKept();
  for (const { form, field, text } of forms) {
    await form.getByRole("button", { name: "Make it" }).click(); // which only an open form shows
    await pollUntil(async () => (await field.inputValue()) !== text); // it was sent, so the example is back
  }
  for (const name of ["Nightly reading", "pump.stopped", `${provider.origin}/told`])
    await page.locator("tbody").getByRole("link", { name }).waitFor();
  await page
    .locator("tbody")
    .getByRole("link", { name: `${provider.origin}/told` })
    .click();
  for (const [button, state] of [
    ["Disable", "disabled"],
    ["Enable", "ready"],
  ] as const) {
    await page.getByRole("button", { name: button }).click();
    await page.locator("h1 .badge", { hasText: state }).waitFor();
  }
  await page.getByRole("link", { name: "Home", exact: true }).click(); // nothing is asked: all was sent
  await page.getByRole("heading", { name: "Home" }).waitFor();
}
