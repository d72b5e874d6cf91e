import { findBarriers, type Window } from "./browser.ts";
import { findStrangeParts } from "./look-around.ts";

/** Reads the reference at /docs: filter, permanent links, and all of it on a narrow screen. Returns what is wrong. */
export async function readReference(window: Window): Promise<string[]> {
  const { page, settle } = window;
  const faults: string[] = [];
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.goto("/docs#%");
  await settle();
  await page.goto("/docs#postAiChat");
  await page.locator("#postAiChat[open]", { hasText: "curl -s" }).waitFor();
  await settle();
  await page.getByLabel("Filter the operations").fill("approvals decide");
  await page.getByText(/^1 of \d+ operations$/).waitFor();
  await page.locator("#postWorkflowsApprovalsByIdDecide").click();
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    faults.push(...(await findBarriers(page)).map((barrier) => `/docs (${colorScheme}): ${barrier}`));
  }
  await page.getByLabel("Filter the operations").fill("");
  await page.setViewportSize({ width: 390, height: 900 });
  await page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true");
  faults.push(...(await findStrangeParts(window)).map((what) => `/docs (390 px): ${what}`));
  return faults;
}
