import type { FakeProvider } from "../../support/fake-provider/server.ts";
import { type ApiClient, endSession, makeApiClient, statusOfMe } from "./api-client.ts";
import type { Window } from "./browser.ts";
import type { Desk } from "./desk.ts";

/** What a person does in the console, in order; each step throws when the page does not show what it must. */

/** The model of the check's own provider, whose answers it holds back until the page has shown what came before. */
export const MODEL = "desk/large";
const usage = { prompt_tokens: 1_200, completion_tokens: 300 };

const documents = ["pump", "valve", "engine"].map((name) => ({
  name: `${name}.md`,
  text: `# The ${name}\n\nThe ${name} is bled before the season. Its pressure is 4 bar at 20 degrees.\n`,
}));

export async function signIn({ page }: Window, key: string): Promise<void> {
  await page.goto("/");
  await page.getByLabel("Your API key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Home" }).waitFor();
}

export async function signInAsOperator({ page }: Window, password: string): Promise<void> {
  await page.goto("/console/operator");
  await page.getByLabel("The operator's password").fill(password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Queues" }).waitFor();
}

/** Pauses a queue and lets it go on, and makes a tenant with a budget and a key. */
export async function manageAsOperator({ page }: Window): Promise<void> {
  await page.getByRole("button", { name: "Pause ingestion" }).click();
  await page.getByRole("button", { name: "Resume ingestion" }).click();
  await page.getByRole("button", { name: "Pause ingestion" }).waitFor();
  await page.getByText("Make a tenant").click();
  await page.getByLabel("Name of the tenant").fill("made");
  await page.getByLabel("Its first owner").fill("ana@made.io");
  await page.getByRole("button", { name: "Make the tenant" }).click();
  await page.locator("pre", { hasText: "sk_" }).waitFor();
  await page.getByRole("button", { name: "Manage made" }).click();
  await page.getByLabel("Limit of a month").fill("5");
  await page.getByRole("button", { name: "Set the budget" }).click();
  await page.locator("tbody tr", { hasText: "made" }).getByText("of $5.00").first().waitFor();
  await page.getByRole("row", { name: "ana@made.io" }).waitFor();
}

/** Sees by Refresh what others have done meanwhile, and goes on where a session has ended in the middle of typing. */
export async function refreshAsOperator({ page, context }: Window, { url, adminToken }: Desk): Promise<void> {
  const call = makeApiClient(url, adminToken);
  const { tenantId } = await call("POST", "/operator/tenants", {
    body: { name: "made elsewhere", subject: "bo@else.io" },
  });
  await call("PUT", "/operator/queues/reindexing", { body: { isPaused: true } });
  const refresh = page.getByRole("button", { name: "Refresh" });
  await refresh.click();
  await page.getByRole("button", { name: "Resume reindexing" }).waitFor();
  await page.getByRole("button", { name: "Manage made elsewhere" }).click();
  await page.getByRole("row", { name: "bo@else.io" }).waitFor();
  await call("POST", `/operator/tenants/${tenantId}/keys`, { body: { subject: "cy@else.io", role: "member" } });
  await call("PUT", "/operator/queues/reindexing", { body: { isPaused: false } });
  await refresh.click();
  await page.getByRole("row", { name: "cy@else.io" }).waitFor();
  await page.getByRole("button", { name: "Pause reindexing" }).waitFor();
  const name = page.getByLabel("Name of the tenant");
  await name.fill("half a na");
  await endSession(url, "/operator/session", await context.cookies());
  await refresh.click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("The operator's password").fill(adminToken);
  await dialog.getByRole("button", { name: "Sign in" }).click();
  await dialog.waitFor({ state: "detached" });
  if ((await name.inputValue()) !== "half a na") throw new Error("What was typed is gone");
}

/** Drops three files on the page, and sees them indexed without loading it again. */
export async function dropDocuments({ page }: Window): Promise<void> {
  await page.goto("/console/documents");
  const dropped = await page.evaluateHandle(`(() => {
    const dropped = new DataTransfer();
    for (const { name, text } of ${JSON.stringify(documents)}) dropped.items.add(new File([text], name, { type: "text/markdown" }));
    return dropped;
  })()`);
  await page.locator(".drop").dispatchEvent("drop", { dataTransfer: dropped });
  for (const title of ["The pump", "The valve", "The engine"]) {
    const row = page.locator("tbody tr", { has: page.getByRole("link", { name: title }) });
    await row.locator(".badge", { hasText: "indexed" }).waitFor();
  }
  await page.getByLabel("Question").fill("When is the valve bled?");
  await page.getByRole("button", { name: "Find passages" }).click();
  await page.locator(".passages li").first().waitFor();
}

/** Gives a document the text of another file: it keeps its page, where the new text shows by itself. */
export async function replaceDocument({ page }: Window): Promise<void> {
  await page.goto("/console/documents");
  await page.getByRole("link", { name: "The pump" }).click();
  await page.locator("tbody .thought", { hasText: "4 bar" }).waitFor();
  const address = page.url();
  const text = "# The pump\n\nThe pump is bled before the season. Its pressure is 6 bar at 20 degrees.\n";
  const file = { name: "pump-2.md", mimeType: "text/markdown", buffer: Buffer.from(text) };
  await page.getByLabel("Replace by a file").setInputFiles(file);
  await page.locator("tbody .thought", { hasText: "6 bar" }).waitFor();
  await page.locator(".facts dd", { hasText: file.name }).waitFor();
  if (page.url() !== address) throw new Error(`The document is now at ${page.url()}`);
}

/** Asks for an answer from documents, and sees its beginning while the rest is held back; goes on, beside another model. */
export async function askInPlayground({ page }: Window, provider: FakeProvider): Promise<void> {
  const rest = Promise.withResolvers<void>();
  const pieces = ["The pump is bled ", "**before the season** [1]."];
  provider.next({ pieces, usage, hold: { afterPieces: 1, until: rest.promise } });
  await page.goto("/console/playground");
  await page.getByLabel("Model").selectOption(MODEL);
  await ask(page, "When is the pump bled?", "*");
  await page.locator(".markdown", { hasText: /^The pump is bled\s*$/ }).waitFor();
  await page.locator(".passages li").first().waitFor();
  rest.resolve();
  await page.locator(".markdown strong", { hasText: "before the season" }).waitFor();
  await page.locator(".citations li", { hasText: "The pump" }).first().waitFor();
  await page.getByRole("button", { name: "Compare with another" }).click();
  await page.getByLabel("Model 2").selectOption(MODEL);
  provider.next({ pieces: ["Six bar."], usage }, { pieces: ["Six bar, too."], usage });
  await ask(page, "And its pressure?", "");
  await page.getByRole("region", { name: "Conversation 2" }).getByText("Tokens in, out").waitFor();
  await page.getByRole("region", { name: "Conversation 1" }).getByText("What preprocessing did").click();
  await page.locator(".facts dd", { hasText: "$" }).first().waitFor();
  for (const [language, text] of [
    ["curl", "curl -s"],
    ["Python", "requests.post"],
    ["TypeScript", "await fetch"],
  ] as const) {
    await page.getByText(`As ${language}`).click();
    await page.locator("pre", { hasText: text }).waitFor();
  }
  await page.goto("/console/playground");
  await page.getByRole("button", { name: "When is the pump bled?" }).click();
  await page.locator(".markdown strong", { hasText: "before the season" }).waitFor();
}

async function ask(page: Window["page"], question: string, documents: string): Promise<void> {
  await page.getByRole("textbox", { name: "Prompt", exact: true }).fill(question);
  await page.getByLabel("Documents").selectOption(documents);
  await page.getByRole("button", { name: "Ask" }).click();
}

/** Makes an agent, and watches its run: a step is on the page while the next one is held back. Opens what it cites. */
export async function runAgent({ page }: Window, provider: FakeProvider): Promise<void> {
  const [choice, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const call = { id: "call_1", name: "rag_query", arguments: JSON.stringify({ query: "When is the engine bled?" }) };
  provider.next(
    { toolCalls: [call], usage, until: choice.promise },
    { pieces: ["The engine is bled before the season."], usage, until: answer.promise },
  );
  await page.goto("/console/agents");
  await page.getByLabel("Its model").selectOption(MODEL);
  await page.getByLabel("Edit as").selectOption("json");
  const text = await page.getByLabel("Definition").inputValue();
  if (!text.includes(`"model": "${MODEL}"`)) throw new Error(`The form has made ${text}`);
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name: "Maintenance desk" }).waitFor();
  await page.getByLabel("Question").fill("When is the engine bled?");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await hasStatus(page, "running");
  choice.resolve();
  await page.locator(".timeline li", { hasText: "rag_query" }).waitFor();
  await hasStatus(page, "running");
  answer.resolve();
  await hasStatus(page, "completed");
  await page.locator("main > .markdown", { hasText: "The engine is bled before the season." }).waitFor();
  await page.locator(".badge", { hasText: "intact" }).waitFor();
  await page.locator(".timeline .call .citations a", { hasText: "The engine" }).first().waitFor();
  await page.locator("main > .citations a", { hasText: "The engine" }).click();
  await page.locator("tr.meant .thought", { hasText: "The engine is bled before the season" }).waitFor();
}

/** Runs a workflow in one window, and decides on its card in another; the first one shows it by itself. */
export async function approveWorkflow(worker: Window, approver: Window): Promise<void> {
  await worker.page.goto("/console/workflows");
  await worker.page.getByRole("button", { name: "Create" }).click();
  await startComplaint(worker);
  await approver.page.goto("/approvals");
  await approver.page.getByRole("link", { name: "Complaint: approve" }).click();
  await approver.page.getByRole("button", { name: "Approve" }).click();
  await approver.page.locator("h1 .badge", { hasText: "approved" }).waitFor();
  await hasStatus(worker.page, "completed");
  await worker.page.goto("/console/workflows");
  await worker.page.getByRole("link", { name: "Complaint" }).click();
  await startComplaint(worker); // which stays undecided
}

/** Two calls of one answer wait: the list shows both by itself; one is approved and made, the other is rejected. */
export async function approveCalls(
  { page }: Window,
  { call, provider }: { call: ApiClient; provider: FakeProvider },
): Promise<void> {
  const sums = ["40 + 2", "70 + 7"].map((expression, place) => {
    return { id: `call_${place}`, name: "calculator", arguments: JSON.stringify({ expression }) };
  });
  provider.next({ toolCalls: sums, usage }, { pieces: ["One of two."], usage });
  const tools = [{ type: "calculator", approval: { assigneeRole: "owner", message: "Add it up?" } }];
  const about = { name: "Adder", model: MODEL, systemPrompt: "You add.", allowSelfApproval: true, tools };
  const { agentId } = await call("POST", "/agents", { body: about });
  await page.goto("/approvals");
  await page.getByRole("heading", { name: "Approvals" }).waitFor();
  const headers = { prefer: "respond-async" };
  await call("POST", `/agents/${agentId}/run`, { body: { input: "Add." }, headers });
  const links = page.getByRole("link", { name: "Adder: calculator" });
  await links.nth(1).waitFor(); // live: nobody has loaded the page again
  await decideCall(page, "40 + 2", "Approve");
  await decideCall(page, "70 + 7", "Reject");
  await page.getByText("One of two.").waitFor();
}

/** Opens the approval of the call with these arguments, and decides on it. */
async function decideCall(page: Window["page"], shown: string, button: "Approve" | "Reject"): Promise<void> {
  await page.goto("/approvals");
  const links = page.getByRole("link", { name: "Adder: calculator" });
  await links.first().waitFor();
  await links.first().click();
  await page.locator(".facts dt", { hasText: "Cost so far" }).waitFor();
  if ((await page.locator("pre", { hasText: `"expression": "${shown}"` }).count()) === 0) {
    await page.goto("/approvals");
    await links.nth(1).click();
  }
  await page
    .locator("pre", { hasText: `"expression": "${shown}"` })
    .first()
    .waitFor();
  await page.getByRole("button", { name: button }).click();
  await page.locator("h1 .badge", { hasText: button === "Approve" ? "approved" : "rejected" }).waitFor();
}

async function startComplaint({ page }: Window): Promise<void> {
  await page.getByRole("heading", { name: "Complaint" }).waitFor();
  await page.getByLabel("complaint").first().fill("The pump is louder than the old one.");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.getByRole("link", { name: "the decision of an admin" }).waitFor();
}

/** The spend of all that, by model and by key, and the calls behind it. */
export async function seeSpend({ page }: Window): Promise<void> {
  await page.goto("/");
  const row = page.getByRole("region", { name: "Spend by model" }).locator("tr", { hasText: MODEL });
  await row.locator("td", { hasText: /^\$0\.0/ }).waitFor();
  await row.getByRole("link").click();
  await page.getByRole("heading", { name: "Calls" }).waitFor();
  await page.locator("tbody a").first().click();
  await page.locator(".facts dt", { hasText: "Answered by" }).waitFor(); // the list says so of its filter
  await page.goBack();
  await page.getByRole("heading", { name: "Calls" }).waitFor();
  await page.goto("/console/keys");
  await page
    .locator("tr", { hasText: "yours" })
    .locator("td", { hasText: /^\$0\.0/ })
    .waitFor();
}

export async function makeAndRevokeKey({ page }: Window, url: string): Promise<void> {
  await page.goto("/console/keys");
  await page.getByLabel("Name", { exact: true }).fill("laptop");
  await page.getByRole("button", { name: "Make a key" }).click();
  const key = await page.locator("pre", { hasText: "sk_" }).textContent();
  const headers = { authorization: `Bearer ${key}` };
  const statusOf = () => statusOfMe(url, headers);
  if ((await statusOf()) !== 200) throw new Error("The new key opens nothing");
  await page.getByRole("row", { name: "laptop" }).getByRole("button", { name: "Revoke" }).click();
  await page.getByRole("row", { name: "laptop" }).waitFor({ state: "detached" });
  if ((await statusOf()) !== 401) throw new Error("The revoked key still opens something");
}

/** Signs out; the cookie that the browser had opens nothing any more. */
export async function signOut({ page, context }: Window, url: string): Promise<void> {
  const cookies = (await context.cookies()).map(({ name, value }) => `${name}=${value}`).join("; ");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Your API key").waitFor();
  const status = await statusOfMe(url, { cookie: cookies });
  if (status !== 401) throw new Error(`After sign-out the session answers ${status}`);
}

const hasStatus = (page: Window["page"], status: string) => page.locator("h1 .badge", { hasText: status }).waitFor();
