import type { Page } from "playwright-core";
import type { Window } from "./browser.ts";

/** What a person does in the console, in order; each step throws when the page does not show what it must. */

const documents = ["pump", "valve", "engine"].map((name) => ({
  name: `${name}.md`,
  mimeType: "text/markdown",
  buffer: Buffer.from(`# The ${name}\n\nThe ${name} is bled before the season. Its pressure is 4 bar at 20 degrees.\n`),
}));

export async function signIn({ page }: Window, key: string): Promise<void> {
  await page.goto("/");
  await page.getByLabel("Your API key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Home" }).waitFor();
}

export async function dropDocuments({ page }: Window): Promise<void> {
  await page.goto("/console/documents");
  await page.locator("input[type=file]").setInputFiles(documents);
  for (const title of ["The pump", "The valve", "The engine"]) {
    await page.locator("tbody").getByRole("link", { name: title }).waitFor();
  }
  await page.getByLabel("Question").fill("When is the valve bled?");
  await page.getByRole("button", { name: "Find" }).last().click();
  await page.locator(".passages li").first().waitFor();
}

export async function askInPlayground({ page }: Window): Promise<void> {
  await page.goto("/console/playground");
  await page.getByRole("textbox", { name: "Prompt", exact: true }).fill("When is the pump bled?");
  await page.getByLabel("Answer from passages").check();
  await page.getByRole("button", { name: "Ask" }).click();
  await page.getByText("Tokens in, out").waitFor();
  await page.locator(".passages li").first().waitFor();
  const answer = await page.locator(".markdown").innerText();
  if (!answer.includes("season")) throw new Error(`The answer is ${JSON.stringify(answer)}`);
}

export async function runAgent({ page }: Window): Promise<void> {
  await page.goto("/console/agents");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name: "Maintenance desk" }).waitFor();
  await page.getByLabel("Question").fill("When is the engine bled?");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await ended(page, "completed");
  await page.locator(".timeline li").first().waitFor();
}

/** Runs a workflow in one window, and decides in another. */
export async function approveWorkflow(worker: Window, approver: Window): Promise<void> {
  await worker.page.goto("/console/workflows");
  await worker.page.getByRole("button", { name: "Create" }).click();
  await worker.page.getByRole("heading", { name: "Complaint" }).waitFor();
  await worker.page.getByLabel("complaint").fill("The pump is louder than the old one.");
  await worker.page.getByRole("button", { name: "Run", exact: true }).click();
  await worker.page.getByRole("link", { name: "the decision of an admin" }).waitFor();
  await approver.page.goto("/approvals");
  await approver.page.getByRole("link", { name: "Complaint: approve" }).click();
  await approver.page.getByRole("button", { name: "Approve" }).click();
  await approver.page.locator("h1 .badge", { hasText: "approved" }).waitFor();
  await ended(worker.page, "completed");
}

export async function makeAndRevokeKey({ page }: Window): Promise<void> {
  await page.goto("/console/keys");
  await page.getByLabel("Name").fill("laptop");
  await page.getByRole("button", { name: "Make a key" }).click();
  const key = await page.locator("pre", { hasText: "sk_" }).innerText();
  if (!/^sk_\w{32}$/.test(key)) throw new Error("The new key is not shown");
  await page.getByRole("row", { name: "laptop" }).getByRole("button", { name: "Revoke" }).click();
  await page.getByRole("row", { name: "laptop" }).waitFor({ state: "detached" });
}

export async function seeSpend({ page }: Window): Promise<void> {
  await page.goto("/");
  await page.getByRole("region", { name: "Spend by model" }).getByRole("link").first().click();
  await page.getByRole("heading", { name: "Calls" }).waitFor();
  await page.locator("tbody a").first().click();
  await page.getByText("Answered by").waitFor();
  await page.goBack();
  await page.getByRole("heading", { name: "Calls" }).waitFor();
}

/** Signs out; the cookie that the browser had opens nothing any more. */
export async function signOut({ page, context }: Window, url: string): Promise<void> {
  const cookies = (await context.cookies()).map(({ name, value }) => `${name}=${value}`).join("; ");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Your API key").waitFor();
  const { status } = await fetch(`${url}/me`, { headers: { cookie: cookies } });
  if (status !== 401) throw new Error(`After sign-out the session answers ${status}`);
}

/** Shows a hostile text as Markdown: nothing of it may run or load, and a link must name its host. */
export async function showHostileMarkdown({ page }: Window): Promise<void> {
  const text = [
    "<script>window.harmed = 1</script><img src=https://evil.example/x onerror='window.harmed = 1'>",
    "![x](https://evil.example/p.png) [good](https://evil.example/a) [bad](javascript:window.harmed=1)",
    "<a href='data:text/html,x' onclick='window.harmed = 1'>x</a><iframe src=//evil.example></iframe><form action=//evil.example><input></form>",
    "<svg onload='window.harmed = 1'></svg><style>body { display: none }</style><p style='position:fixed' class=problem id=app>y</p>",
  ].join("\n\n");
  const found = await page.evaluate(`(async () => {
    const [{ Markdown }, { html }, { render }] = await Promise.all(
      ["markdown", "html", "preact"].map((name) => import("/console/files/" + name + ".js")));
    const place = document.body.appendChild(document.createElement("section"));
    render(html\`<\${Markdown} text=\${${JSON.stringify(text)}} />\`, place);
    await new Promise((resolve) => setTimeout(resolve, 300));
    const shown = place.innerHTML; const words = place.innerText; place.remove();
    return { shown, words, harmed: window.harmed };
  })()`);
  const { shown, words, harmed } = found as { shown: string; words: string; harmed: unknown };
  const markup = shown.replace(/>[^<]*/g, ">"); // without the texts, which name what they may
  const isHarmless = !/<(?:script|img|iframe|form|input|svg|style)|\son\w+=|style=|javascript:|id=/i.test(markup);
  if (harmed !== undefined || !isHarmless) throw new Error(`Hostile Markdown was shown as ${shown}`);
  if (!words.includes("(evil.example)")) throw new Error(`A link does not name its host: ${words}`);
}

const ended = (page: Page, status: string) => page.locator("h1 .badge", { hasText: status }).waitFor();
