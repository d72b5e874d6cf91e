import type { Window } from "./browser.ts";
import { MODEL } from "./walk.ts";

/** What a member may and may not, and what another tenant sees: each throws when a page shows too much or too little. */

/** A member asks and reads; what a member may not do is not offered. */
export async function beMember(member: Window): Promise<void> {
  const { page, settle } = member;
  await page.goto("/console/documents");
  await page.locator("tbody").getByRole("link", { name: "The pump" }).waitFor();
  await page.goto("/console/playground");
  await page.getByLabel("Model").selectOption(MODEL);
  await page.getByRole("textbox", { name: "Prompt", exact: true }).fill("What is a lease?");
  await page.getByRole("button", { name: "Ask" }).click();
  await page.getByText("Tokens in, out").waitFor();
  await page.goto("/console/keys");
  await page.getByText("Owners make and revoke API keys").waitFor();
  await page.getByText("Admins manage widget keys").waitFor();
  await settle();
  for (const name of ["Make a key", "Make a widget key", "Set", "Revoke", "Remove"]) {
    const offered = await page.getByRole("button", { name, exact: true }).count();
    if (offered > 0) throw new Error(`A member is offered ${name}`);
  }
  await page.goto("/approvals");
  await page.getByRole("link", { name: "Complaint: approve" }).first().click();
  await page.getByText("Your key may not decide this").waitFor();
  if ((await page.getByRole("button", { name: "Approve" }).count()) > 0)
    throw new Error("A member is offered to approve");
}

/** Another tenant's lists are empty, and what has an address shows nothing there. */
export async function seeNothing({ page, settle }: Window, { lists, details }: { lists: string[]; details: string[] }) {
  for (const list of lists) {
    await page.goto(list);
    await page.locator("main h1").first().waitFor();
    await settle();
    const rows = await page.locator("tbody tr", { has: page.locator("a[href^='/console/']") }).count();
    const isKeys = list.endsWith("/keys"); // where its own key stands
    if (rows > (isKeys ? 1 : 0)) throw new Error(`${list} shows another tenant's`);
  }
  for (const detail of details) {
    await page.goto(detail);
    await page
      .locator("main .problem", { hasText: /^There is no / })
      .first()
      .waitFor();
    await settle();
    const text = (await page.locator("main").textContent()) ?? "";
    if (/pump|complaint|maintenance/i.test(text)) throw new Error(`${detail} shows another tenant's: ${text}`);
  }
}
