import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { z } from "zod";
import { defined } from "../../src/lib/defined.ts";
import { notFound } from "../../src/lib/errors.ts";
import { idSchema } from "../../src/lib/ids.ts";
import { declareRoutes, type HandlerInput, type JsonReply } from "../route.ts";
import { etagOf, isNamed } from "./models.ts";

const folder = new URL("../console/", import.meta.url);

/** Packages that the console's files import by name; each is one module without imports of others but these. */
const packages = ["preact", "preact/hooks", "htm", "marked", "dompurify", "uplot"] as const;

/** `import … from "preact/hooks"`, as `./preact-hooks.js`: browsers find no packages by name, and an import map would be inline. */
const namedImport = new RegExp(`(\\bfrom\\s*|\\bimport\\()"(${packages.join("|")})"`, "g");
const fileOf = (name: string) => `${name.replace("/", "-")}.js`;

const withPaths = (text: string) =>
  text.replace(namedImport, (_, before: string, name: string) => `${before}"./${fileOf(name)}"`);

/** Where a package's module for browsers is. uPlot names another one by its own name. */
const moduleOf = (name: string) => import.meta.resolve(name === "uplot" ? "uplot/dist/uPlot.esm.js" : name);

/** The files that the console's page loads, by name: its own, and those of packages. Read once, at the first request. */
async function readConsoleFiles(): Promise<ReadonlyMap<string, string>> {
  const names = (await readdir(folder)).filter((name) => /\.(?:js|css)$/.test(name));
  const own = names.map((name) => [name, new URL(name, folder)] as const);
  const others = packages.map((name) => [fileOf(name), new URL(moduleOf(name))] as const);
  const style = ["uplot.css", new URL(import.meta.resolve("uplot/dist/uPlot.min.css"))] as const;
  const read = [...own, ...others, style].map(async ([name, url]) => {
    const text = await readFile(fileURLToPath(url), "utf8");
    return [name, name.endsWith(".js") ? withPaths(text) : text] as const;
  });
  return new Map(await Promise.all(read));
}

/** How long a browser may keep the widget's script, in seconds. */
const SCRIPT_MAX_AGE_S = 3_600;

/** Files of `api/pages`. Anybody may load them: they hold no data, which a page fetches with its reader's key. */
type Asset = {
  path: string;
  file: string;
  summary: string;
  headers?: Record<string, string>;
};

/** Headers of a page. It may load only files of this server, and nothing inline. */
export const pageHeaders = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
};

const readPage = (file: string) => readFile(new URL(`../pages/${file}`, import.meta.url), "utf8");

const types: Record<string, string> = { html: "text/html", js: "text/javascript", css: "text/css" };
const typeOf = (file: string) => types[file.split(".").at(-1) ?? ""] ?? "text/plain";

const publicPages = declareRoutes({ auth: "public", tags: ["Pages"] });

let consolePage: Promise<Packed> | undefined;
let consoleFiles: Promise<ReadonlyMap<string, Packed>> | undefined;

async function sendConsole({ header }: Pick<HandlerInput, "header">, headers: Record<string, string> = {}) {
  consolePage ??= readPage("console.html").then(pack);
  return toPackedReply(await consolePage, { header, headers: { ...pageHeaders, ...headers } });
}

async function packConsoleFiles(): Promise<ReadonlyMap<string, Packed>> {
  const packing = [...(await readConsoleFiles())].map(async ([name, text]) => [name, await pack(text)] as const);
  return new Map(await Promise.all(packing));
}

const home = publicPages.get("/", {
  summary: "The console, a page for browsers; links as JSON for others",
  headers: { accept: "`text/html` selects the page" },
  responses: {
    200: {
      description: "The links; or the page, as `text/html`",
      body: z.union([z.object({ name: z.string(), links: z.record(z.string(), z.string()) }), z.string()]),
    },
    304: { description: "The page that you have is current" },
  },
  async handler(input) {
    const headers = { vary: "accept, accept-encoding" };
    if (!input.header("accept")?.includes("text/html")) return { status: 200, headers, body: homeLinks };
    return sendConsole(input, headers);
  },
});

/** Places in the console, which the page itself reads: each can be sent to a colleague. */
const screen = z.string().regex(/^[a-z-]{1,40}$/);
const consolePlaces = [
  { path: "/console/:screen", params: z.object({ screen }) },
  { path: "/console/:screen/:id", params: z.object({ screen, id: z.string().max(100) }) },
  { path: "/runs/:runId", params: z.object({ runId: idSchema("run") }) },
  { path: "/approvals", params: undefined },
];
const page = {
  200: { description: "The page", body: z.string(), contentType: "text/html" },
  304: { description: "The page that you have is current" },
};
const consoleRoutes = consolePlaces.map(({ path, params }) =>
  publicPages.get(path, {
    summary: "A place in the console",
    ...defined({ params }),
    responses: page,
    handler: (input) => sendConsole(input),
  }),
);

const fileResponses = {
  200: { description: "The file", body: z.string(), contentType: "text/javascript" },
  304: { description: "The file that you have is current" },
};

async function sendFile(
  { params: { file }, header }: Pick<HandlerInput<{ file: string }>, "params" | "header">,
  headers: Record<string, string> = {},
) {
  consoleFiles ??= packConsoleFiles();
  const packed = (await consoleFiles).get(file);
  if (packed === undefined) throw notFound("file");
  return toPackedReply(packed, { header, headers: { "content-type": `${typeOf(file)}; charset=utf-8`, ...headers } });
}

const consoleFileRoute = publicPages.get("/console/files/:file", {
  summary: "A script or style of the console",
  params: z.object({ file: z.string().regex(/^[a-z-]{1,40}\.(?:js|css)$/) }),
  responses: fileResponses,
  handler: (input) => sendFile(input),
});

const homeLinks = {
  name: "Switchyard",
  links: { reference: "/docs", openapi: "/openapi.json", openai: "/v1", tools: "/mcp", readiness: "/readyz" },
};

function assetRoutes(tag: string, assets: readonly Asset[]) {
  const routes = declareRoutes({ auth: "public", tags: [tag] });
  return assets.map(({ path, file, headers, ...about }) => {
    const type = typeOf(file);
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
  { path: "/pages/page.css", file: "page.css", summary: "The pages' style" },
  { path: "/pages/docs.js", file: "docs.js", summary: "The filter of the reference" },
];

/** Of what is made for pages of other origins. */
const foreignHeaders = {
  "cross-origin-resource-policy": "cross-origin",
  "cache-control": `public, max-age=${SCRIPT_MAX_AGE_S}`,
};

/** The renderer of Markdown, which the widget shares with the console: modules, which browsers load by CORS alone. */
const widgetFileRoute = declareRoutes({ auth: "public", tags: ["Widget"] }).get("/widget/files/:file", {
  summary: "A module of the chat bubble",
  params: z.object({ file: z.enum(["safe-markdown.js", "marked.js", "dompurify.js"]) }),
  responses: fileResponses,
  handler: (input) => sendFile(input, { ...foreignHeaders, "access-control-allow-origin": "*" }),
});

const widget: readonly Asset[] = [
  { path: "/widget.js", file: "widget.js", summary: "The chat bubble, for any page", headers: foreignHeaders },
  { path: "/widget/demo", file: "widget-demo.html", summary: "A page to try the chat bubble on" },
  { path: "/widget/demo.js", file: "widget-demo.js", summary: "Its script" },
  { path: "/widget/demo.css", file: "widget-demo.css", summary: "Its style" },
];

export const pageRoutes = [
  home,
  consoleFileRoute,
  ...consoleRoutes,
  ...assetRoutes("Widget", widget),
  widgetFileRoute,
  ...assetRoutes("Pages", pages),
];

/** A text that many requests get, compressed once. */
export type Packed = { bytes: Buffer; zipped: Buffer; etag: string };

const compress = promisify(gzip);

export async function pack(text: string): Promise<Packed> {
  const bytes = Buffer.from(text);
  return { bytes, zipped: await compress(bytes), etag: etagOf(text) };
}

/** The reply with a text: 304 to a client that has it, compressed for one that accepts that. */
export function toPackedReply(
  { bytes, zipped, etag }: Packed,
  { header, headers }: { header(name: string): string | undefined; headers: Record<string, string> },
): JsonReply {
  const caching = { "cache-control": "no-cache", ...headers, etag, vary: "accept-encoding" };
  if (isNamed(header("if-none-match"), etag)) return { status: 304, headers: caching };
  const takesGzip = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/.test(header("accept-encoding") ?? "");
  if (!takesGzip) return { status: 200, headers: caching, body: bytes };
  return { status: 200, headers: { ...caching, "content-encoding": "gzip" }, body: zipped };
}
