import { readFile } from "node:fs/promises";
import { z } from "zod";
import { idSchema } from "../../src/ids.ts";
import { declareRoutes } from "../route.ts";

/** How long a browser may keep the widget's script, in seconds. */
const SCRIPT_MAX_AGE_S = 3_600;

/** Files of `api/pages`. Anybody may load them: they hold no data, which a page fetches with its reader's key. */
type Asset = {
  path: string;
  file: string;
  summary: string;
  /** Of the path's parameters, which the page itself reads. */
  params?: z.ZodObject;
  headers?: Record<string, string>;
};

/** Headers of a page. It may load only files of this server, and nothing inline. */
export const pageHeaders = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
};

const readPage = (file: string) => readFile(new URL(`../pages/${file}`, import.meta.url), "utf8");

const home = declareRoutes({ auth: "public", tags: ["Pages"] }).get("/", {
  summary: "Where to begin: a page for browsers, the same links as JSON for others",
  headers: { accept: "`text/html` selects the page" },
  responses: {
    200: {
      description: "The links; or the page, as `text/html`",
      body: z.union([z.object({ name: z.string(), links: z.record(z.string(), z.string()) }), z.string()]),
    },
  },
  async handler({ header }) {
    const headers = { vary: "accept" };
    if (!header("accept")?.includes("text/html")) return { status: 200, headers, body: homeLinks };
    return { status: 200, headers: { ...headers, ...pageHeaders }, body: await readPage("home.html") };
  },
});

const homeLinks = {
  name: "Switchyard",
  links: { reference: "/docs", openapi: "/openapi.json", openai: "/v1", tools: "/mcp", readiness: "/readyz" },
};

const types: Record<string, string> = { html: "text/html", js: "text/javascript", css: "text/css" };

function assetRoutes(tag: string, assets: readonly Asset[]) {
  const routes = declareRoutes({ auth: "public", tags: [tag] });
  return assets.map(({ path, file, headers, ...about }) => {
    const type = types[file.split(".").at(-1) ?? ""] ?? "text/plain";
    const own = type === "text/html" ? pageHeaders : { "content-type": `${type}; charset=utf-8` };
    let content: Promise<string> | undefined;
    return routes.get(path, {
      ...about,
      responses: { 200: { description: "The file", body: z.string(), contentType: type } },
      async handler() {
        content ??= readPage(file);
        return { status: 200, body: await content, headers: { ...own, ...headers } };
      },
    });
  });
}

const pages: readonly Asset[] = [
  {
    path: "/runs/:runId",
    file: "run.html",
    summary: "A page that shows an agent's run as a timeline, live while it runs",
    params: z.object({ runId: idSchema("run") }),
  },
  {
    path: "/approvals",
    file: "approvals.html",
    summary: "A page that shows the decisions that runs wait for, with each run so far, to decide there",
  },
  { path: "/pages/approvals.js", file: "approvals.js", summary: "Its script" },
  { path: "/pages/run.js", file: "run.js", summary: "Its script" },
  { path: "/pages/session.js", file: "session.js", summary: "How the pages call the API, with their reader's key" },
  { path: "/pages/page.css", file: "page.css", summary: "The pages' style" },
];

const widget: readonly Asset[] = [
  {
    path: "/widget.js",
    file: "widget.js",
    summary: "The chat bubble, for any page",
    // It is made for pages of other origins.
    headers: { "cross-origin-resource-policy": "cross-origin", "cache-control": `public, max-age=${SCRIPT_MAX_AGE_S}` },
  },
  { path: "/widget/demo", file: "widget-demo.html", summary: "A page to try the chat bubble on" },
  { path: "/widget/demo.js", file: "widget-demo.js", summary: "Its script" },
  { path: "/widget/demo.css", file: "widget-demo.css", summary: "Its style" },
];

export const pageRoutes = [home, ...assetRoutes("Widget", widget), ...assetRoutes("Pages", pages)];
