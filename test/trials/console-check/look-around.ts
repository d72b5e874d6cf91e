import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { findBarriers, type Window } from "./browser.ts";

/** How each screen is looked at; width in px. `isUnfolded`: with all that is folded open; of that there is no picture. */
const looks = [
  { name: "light", colorScheme: "light", width: 1280, isUnfolded: false },
  { name: "dark", colorScheme: "dark", width: 1280, isUnfolded: false },
  { name: "narrow", colorScheme: "light", width: 390, isUnfolded: false },
  { name: "unfolded, dark and narrow", colorScheme: "dark", width: 390, isUnfolded: true },
] as const;

/** Of the pictures, from 0 to 1: letters stay sharp. */
const QUALITY = 0.75;

export type Places = { lists: string[]; details: string[] };

/** Every screen that the navigation names, and the earliest thing of each kind that they list. */
export async function findPlaces({ page, settle }: Window): Promise<Places> {
  await page.goto("/");
  await page.locator("header nav a").first().waitFor();
  const lists = (await page.evaluate(
    "[...document.querySelectorAll('header nav a')].map((link) => link.getAttribute('href'))",
  )) as string[]; // as written above
  lists.push("/console/feedback"); // which the navigation does not name
  const details = new Map<string, string>();
  for (const list of lists) {
    await page.goto(list === "/console/runs" ? `${list}?kind=agent` : list); // whose pages show most
    await page.locator("main h1").first().waitFor();
    await settle();
    const listed = (await page.evaluate(
      "[...document.querySelectorAll('tbody a')].filter(({ search }) => search === '').map(({ pathname }) => pathname)",
    )) as string[]; // as written above
    for (const path of listed) {
      const [, kind] = /^\/console\/([a-z-]+)\/[a-z]+_[0-9A-Z]{26}$/.exec(path) ?? [];
      const isElsewhere = `/console/${kind}` !== list && lists.includes(`/console/${kind}`);
      if (kind && !isElsewhere) details.set(kind, path);
    }
  }
  return { lists, details: [...details.values()] };
}

/** Every place in every look; returns what is wrong with them. `pictures`: a folder for a picture of each. */
export async function lookAround(window: Window, places: string[], pictures?: string): Promise<string[]> {
  const { page, settle } = window;
  if (pictures) await mkdir(pictures, { recursive: true });
  const faults: string[] = [];
  for (const place of places) {
    await page.goto(place);
    await page.locator("main h1").first().waitFor();
    await settle();
    if (place === PLAYGROUND) await openConversation(window);
    for (const { name, colorScheme, width, isUnfolded } of looks) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 900 });
      if (isUnfolded) await unfold(window);
      const wrong = [...(await findStrangeParts(window)), ...(await findBarriers(page))];
      faults.push(...wrong.map((barrier) => `${place} (${name}): ${barrier}`));
      if (pictures && !isUnfolded) await keepPicture(window, join(pictures, `${nameOf(place)}-${name}.webp`));
    }
  }
  return faults;
}

const PLAYGROUND = "/console/playground";

/** Opens what was asked last in this tab. */
async function openConversation({ page, settle }: Window): Promise<void> {
  await page.locator("main h2 + ul button").first().click();
  await page.getByRole("region", { name: "Conversation 1" }).getByText("Cost").first().waitFor();
  await settle();
}

/** How deep things are folded into each other that are looked at, as runs within a run. */
const DEPTH = 3;

/** Opens what is folded, and what that holds in turn; and the oldest version of a definition, with what has changed since. */
async function unfold({ page, settle }: Window): Promise<void> {
  for (let depth = 0; depth < DEPTH; depth += 1) {
    await page.evaluate(`(() => {
      for (const one of document.querySelectorAll("main details:not([open]) > summary")) one.click();
      document.querySelector("main [aria-label='Show version 1']")?.click();
    })()`);
    await settle();
  }
}

/** Keeps a small picture of the whole page; the browser itself makes the WebP of it. */
async function keepPicture({ page, context }: Window, file: string): Promise<void> {
  const png = (await page.screenshot({ fullPage: true })).toString("base64");
  const blank = await context.newPage();
  const webp = (await blank.evaluate(`(async () => {
    const image = new Image();
    image.src = "data:image/png;base64,${png}";
    await image.decode();
    const canvas = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
    canvas.getContext("2d").drawImage(image, 0, 0);
    return canvas.toDataURL("image/webp", ${QUALITY}).split(",")[1];
  })()`)) as string; // as written above
  await blank.close();
  await writeFile(file, Buffer.from(webp, "base64"));
}

/** What no page of the console may have: something inline, a part that is wider than the screen, a link that does not name where it leads. */
export async function findStrangeParts({ page }: Window): Promise<string[]> {
  return (await page.evaluate(`(() => {
    const all = (selector) => [...document.querySelectorAll(selector)];
    const markup = (node) => node.outerHTML.slice(0, 200);
    // An empty style is what axe leaves behind. Charts are placed by the object model, which the page's policy lets scripts do.
    const inline = all("*").filter((node) => node.matches("style, [style]:not([style=\\"\\"], .plot *), script:not([src]), iframe, object, embed, base")
      || [...node.attributes].some(({ name }) => name.startsWith("on")));
    const foreign = all("a[href]").filter(({ origin }) => origin !== location.origin);
    const unmarked = foreign.filter(({ rel, target, textContent, host }) =>
      !rel.split(" ").includes("noopener") || target !== "_blank" || !textContent.includes(host));
    const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
    return [
      ...inline.map((node) => "inline: " + markup(node)),
      ...unmarked.map((node) => "a link that does not show where it leads: " + markup(node)),
      ...(wide > 0 ? [wide + " px too wide"] : []),
      ...(window.harmed === undefined ? [] : ["a script from outside has run: " + window.harmed]),
    ];
  })()`)) as string[]; // as written above
}

/** A name for a picture of a place, as `runs-one`. */
export function nameOf(place: string): string {
  const [, , screen = "", id = ""] = place.split(/[?#]/)[0]?.split("/") ?? [];
  return `${screen === "" ? place.split("/")[1] || "home" : screen}${id === "" ? "" : "-one"}`;
}
