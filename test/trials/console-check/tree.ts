import type { ApiClient } from "./api-client.ts";
import type { Window } from "./browser.ts";

const set = (id: string) => ({ type: "set", id, values: { said: "{{ input }}" } });

/** Looks into the runs within a run: one that a step has started, and one of an item of a list; both are opened in their place. */
export async function seeTree({ page }: Window, call: ApiClient): Promise<void> {
  const create = async (name: string, steps: object[]) =>
    String((await call("POST", "/workflows", { body: { name, steps } })).workflowId);
  const inner = await create("Innermost", [set("deepest")]);
  const middle = await create("Middle", [{ type: "workflow", id: "down", workflowId: inner, input: "{{ input }}" }]);
  const list = [{ type: "workflow", id: "each", workflowId: inner, input: "item {{ item }}" }];
  const outer = await create("Tree", [
    { type: "workflow", id: "first", workflowId: middle, input: "from far above" },
    { type: "parallel", id: "both", branches: { left: [set("within")] } },
    { type: "for_each", id: "loop", items: "[7, 8]", do: list },
  ]);
  const headers = { prefer: "wait=60" };
  const run = await call("POST", `/workflows/${outer}/execute`, { body: {}, headers });
  await page.goto(`/console/runs?workflowId=${run.workflowId}`);
  await page.locator("td.what").getByRole("link", { name: "Tree" }).click();
  const stepOf = (id: string) =>
    page.locator(".timeline > li", { has: page.locator(`:scope > h3`, { hasText: id }) }).first();
  await stepOf("both").locator(".timeline li h3", { hasText: "within" }).waitFor();
  await stepOf("first").getByText("What it did").click();
  await stepOf("down").getByText("What it did").click();
  await stepOf("deepest").locator("pre", { hasText: "from far above" }).waitFor();
  await stepOf("loop").getByText("Runs that its items have started").click();
  const item = stepOf("loop").locator(".timeline > li", { hasText: "item 1, each:" });
  await item.getByText("What it did").click();
  await item.locator("pre", { hasText: "item 8" }).first().waitFor();
  await item.getByRole("link", { name: "the run of the workflow" }).click();
  await page.getByRole("heading", { name: "Innermost" }).waitFor();
}
