import type { FakeProvider } from "../../support/fake-provider/server.ts";
import type { ApiClient } from "./api-client.ts";
import type { Window } from "./browser.ts";
import { MODEL } from "./walk.ts";

/** What four users of a console do often, each from the home page, in few actions. */

/** What one action, and what it shows, may take, in ms: also on a machine that does much else. */
const ACTION_TIMEOUT_MS = 60_000;
/** Most actions of a task: a click, a choice, a text that is written. To look is no action. */
const MAX_ACTIONS = 6;
const usage = { prompt_tokens: 900, completion_tokens: 200 };

type Page = Window["page"];

/** A person's actions, counted. What is asked for by its name is found as a person finds it. */
function makeHand(page: Page) {
  let actions = 0;
  const count = <T>(act: Promise<T>): Promise<T> => {
    actions += 1;
    return act;
  };
  return {
    count: () => actions,
    act: count,
    open: (screen: string) =>
      count(page.locator("header nav").getByRole("link", { name: screen, exact: true }).click()),
    link: (name: string | RegExp) => count(page.getByRole("link", { name }).first().click()),
    press: (name: string) => count(page.getByRole("button", { name, exact: true }).first().click()),
    unfold: (text: string) => count(page.getByText(text, { exact: true }).first().click()),
    write: (label: string, text: string) => count(page.getByLabel(label, { exact: true }).first().fill(text)),
    choose: (label: string, option: string) => count(page.getByLabel(label).first().selectOption(option)),
    check: (label: string) => count(page.getByLabel(label).first().check()),
    file: (label: string, name: string, text: string) =>
      count(
        page
          .getByLabel(label)
          .first()
          .setInputFiles({ name, mimeType: "text/markdown", buffer: Buffer.from(text) }),
      ),
    find: async (id: string) => {
      await count(page.locator("#search").fill(id));
      await count(page.locator("#search").press("Enter"));
    },
    sees: (text: string | RegExp) => page.locator("main").getByText(text).first().waitFor(),
    badge: (text: string) => page.locator("h1 .badge", { hasText: text }).waitFor(),
  };
}

type Hand = ReturnType<typeof makeHand>;
type Around = { provider: FakeProvider; call: ApiClient; page: Page };
type Task = {
  name: string;
  prepare?: (around: Around) => Promise<unknown>;
  act: (hand: Hand, around: Around, made: unknown) => Promise<void>;
};

const ask = (call: ApiClient, content: string) =>
  call("POST", "/ai/chat", { body: { model: MODEL, messages: [{ role: "user", content }] } });
const idOf = (made: unknown, name: string) => String(Reflect.get(Object(made), name));

/** Saves what a button downloads; its name. */
async function download(page: Page, press: () => Promise<void>): Promise<string> {
  const [saved] = await Promise.all([page.waitForEvent("download"), press()]);
  return saved.suggestedFilename();
}

const tasks: readonly Task[] = [
  {
    name: "run an agent and read its answer",
    prepare: async ({ provider }) => provider.next({ pieces: ["In spring."], usage }),
    async act(hand) {
      await hand.open("Agents");
      await hand.link("Maintenance desk");
      await hand.write("Question", "When is it bled?");
      await hand.press("Run");
      await hand.sees("In spring.");
    },
  },
  {
    name: "find a failed call, and why it failed",
    async prepare({ call, provider }) {
      provider.next({ status: 400, errorMessage: "The pump is on fire." });
      await call("POST", "/ai/chat", {
        body: { model: MODEL, messages: [{ role: "user", content: "Hello" }] },
        mayFail: true,
      });
    },
    async act(hand, { page }) {
      await hand.open("Calls");
      await hand.choose("Outcome", "failed");
      await page.locator("tbody .badge", { hasText: "failed" }).first().waitFor();
      await hand.link(/:/);
      await hand.sees(/./);
      await page.locator("main .problem").first().waitFor();
    },
  },
  {
    name: "open the page of an id",
    prepare: ({ call }) => ask(call, "An id"),
    async act(hand, _around, made) {
      await hand.find(idOf(made, "logId"));
      await hand.sees("Answered by");
    },
  },
  {
    name: "change a prompt and compare the versions",
    async act(hand) {
      await hand.open("Agents");
      await hand.link("Maintenance desk");
      await hand.write("Its prompt", "You answer in one sentence.");
      await hand.press("Save as version 2");
      await hand.press("Show version 1");
      await hand.sees('+   "systemPrompt": "You answer in one sentence."');
    },
  },
  {
    name: "restore an earlier version",
    async act(hand) {
      await hand.open("Agents");
      await hand.link("Maintenance desk");
      await hand.press("Restore version 1");
      await hand.press("Show version 3");
    },
  },
  {
    name: "give an agent a tool that needs an approval",
    async act(hand) {
      await hand.open("Agents");
      await hand.link("Maintenance desk");
      await hand.choose("Add a tool", "calculator");
      await hand.unfold("Its calls need an approval");
      await hand.press("Save as version 4");
      await hand.sees("Save as version 5");
    },
  },
  {
    name: "try a prompt without saving it",
    prepare: async ({ provider }) => provider.next({ pieces: ["A draft's answer."], usage }),
    async act(hand) {
      await hand.open("Agents");
      await hand.link("Maintenance desk");
      await hand.unfold("Try the draft, without its tools");
      await hand.write("Ask the draft", "Well?");
      await hand.press("Try it");
      await hand.sees("A draft's answer.");
    },
  },
  {
    name: "load a document and see it indexed",
    async act(hand, { page }) {
      await hand.open("Documents");
      await hand.file("Drop PDF", "gasket.md", "# The gasket\n\nThe gasket is changed every second year.\n");
      await page.locator("tbody tr", { hasText: "The gasket" }).locator(".badge", { hasText: "indexed" }).waitFor();
    },
  },
  {
    name: "add a text to a collection of its own",
    async act(hand, { page }) {
      await hand.open("Documents");
      await hand.write("Into the collection", "seals");
      await hand.unfold("Add a text");
      await hand.write("Text", "The seal of the valve is made of rubber.");
      await hand.press("Add the text");
      await page.getByRole("link", { name: /^seals 1/ }).waitFor();
    },
  },
  {
    name: "check what a question finds in one collection",
    async act(hand) {
      await hand.open("Documents");
      await hand.link(/^seals 1/);
      await hand.write("Question", "What is the seal made of?");
      await hand.press("Find passages");
      await hand.unfold("Filter, rewriting and rerank");
      await hand.sees(/coverage \d+ %/);
    },
  },
  {
    name: "find out what cost most last week",
    async act(hand, { page }) {
      await hand.open("Usage");
      await hand.choose("Range", "week");
      await page
        .locator("tbody tr", { hasText: MODEL })
        .locator("td", { hasText: /^\$0\.\d/ })
        .waitFor();
      await page.locator(".chart canvas").first().waitFor();
    },
  },
  {
    name: "see spend by key beside the time before",
    async act(hand) {
      await hand.open("Usage");
      await hand.choose("Group by", "key");
      await hand.check("Compare with the time before");
      await hand.sees("all, before");
    },
  },
  {
    name: "export the spend as CSV",
    async act(hand, { page }) {
      await hand.open("Usage");
      await page.locator(".chart canvas").first().waitFor();
      const name = await download(page, () => hand.press("Spend as CSV"));
      if (name !== "spend.csv") throw new Error(`It is saved as ${name}`);
    },
  },
  {
    name: "export the calls as JSON",
    async act(hand, { page }) {
      await hand.open("Calls");
      const name = await download(page, () => hand.press("ai logs as JSON"));
      if (name !== "ai-logs.json") throw new Error(`It is saved as ${name}`);
    },
  },
  {
    name: "compare two models",
    prepare: async ({ provider }) => provider.next({ pieces: ["One."], usage }, { pieces: ["One."], usage }),
    async act(hand, { page }) {
      await hand.open("Playground");
      await hand.choose("Model", MODEL);
      await hand.press("Compare with another");
      await hand.choose("Model 2", MODEL);
      await hand.write("Prompt", "How many?");
      await hand.press("Ask");
      await page.getByRole("region", { name: "Conversation 2" }).getByText("Cost").waitFor();
      await page.getByRole("region", { name: "Conversation 1" }).getByText("Cost").waitFor();
    },
  },
  {
    name: "take a prompt into a program",
    prepare: async ({ provider }) => provider.next({ pieces: ["Yes."], usage }),
    async act(hand) {
      await hand.open("Playground");
      await hand.choose("Model", MODEL);
      await hand.write("Prompt", "Well?");
      await hand.press("Ask");
      await hand.unfold("As Python");
      await hand.sees(/requests\.post/);
    },
  },
  {
    name: "stop a runaway run",
    async prepare({ call, provider }) {
      provider.next({ pieces: ["never"], usage, until: new Promise(() => undefined) });
      const { agentId } = await call("POST", "/agents", {
        body: { name: "Runaway", model: MODEL, systemPrompt: "Run." },
      });
      await call("POST", `/agents/${agentId}/run`, { body: { input: "Run." }, headers: { prefer: "respond-async" } });
    },
    async act(hand, { page }) {
      await page
        .getByRole("link", { name: /Runaway/ })
        .first()
        .waitFor();
      await hand.link(/Runaway/);
      await hand.press("Cancel");
      await hand.badge("cancelled");
    },
  },
  {
    name: "rotate a key",
    prepare: ({ call }) => call("POST", "/keys", { body: { role: "member", name: "old laptop" } }),
    async act(hand, { page }) {
      await hand.open("Keys and limits");
      await hand.write("Name", "new laptop");
      await hand.press("Make a key");
      await page.locator("pre", { hasText: "sk_" }).waitFor();
      await page.getByRole("row", { name: "old laptop" }).waitFor();
      await hand.act(page.getByRole("row", { name: "old laptop" }).getByRole("button", { name: "Revoke" }).click());
      await page.getByRole("row", { name: "old laptop" }).waitFor({ state: "detached" });
    },
  },
  {
    name: "give a key of one collection",
    async act(hand, { page }) {
      await hand.open("Keys and limits");
      await hand.write("Name", "kiosk");
      await hand.write("Only these collections (optional)", "seals");
      await hand.press("Make a key");
      await page.getByRole("row", { name: "kiosk" }).getByText("seals").waitFor();
    },
  },
  {
    name: "follow a workflow from its start",
    prepare: async ({ provider }) => provider.next({ pieces: ["We are sorry."], usage }),
    async act(hand) {
      await hand.open("Workflows");
      await hand.link("Complaint");
      await hand.write("complaint", "It is loud.");
      await hand.press("Run");
      await hand.sees("the decision of an admin");
    },
  },
];

/** Does every task. Returns what could not be done, or took too many actions, each as a line. */
export async function doTasks(
  { page }: Window,
  { provider, call }: { provider: FakeProvider; call: ApiClient },
): Promise<string[]> {
  const faults: string[] = [];
  page.setDefaultTimeout(ACTION_TIMEOUT_MS);
  for (const { name, prepare, act } of tasks) {
    try {
      const around = { provider, call, page };
      const made = await prepare?.(around);
      await page.goto("/");
      await page.getByRole("heading", { name: "Home" }).waitFor();
      const hand = makeHand(page);
      await act(hand, around, made);
      console.log(`    ${name}: ${hand.count()} actions`);
      if (hand.count() > MAX_ACTIONS) faults.push(`${name} takes ${hand.count()} actions`);
    } catch (error) {
      faults.push(`${name}: ${(error as Error).message.slice(0, 600)}`);
    }
  }
  page.setDefaultTimeout(120_000);
  return faults;
}
