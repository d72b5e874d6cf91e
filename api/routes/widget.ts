import { readFile } from "node:fs/promises";
import { z } from "zod";
import { type AnyRoute, route } from "../route.ts";

const tags = ["Widget"];

/** How long a page's browser may keep the script, in seconds. */
const SCRIPT_MAX_AGE_S = 3_600;
/** What the demo page may load: what this server gives it, and nothing inline. */
const demoPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

type Asset = { path: string; file: string; type: string; summary: string; headers?: Record<string, string> };

const assets: readonly Asset[] = [
  {
    path: "/widget.js",
    file: "widget.js",
    type: "text/javascript; charset=utf-8",
    summary: "The chat bubble, for any page",
    // Pages of other origins are what it is for.
    headers: { "cross-origin-resource-policy": "cross-origin", "cache-control": `public, max-age=${SCRIPT_MAX_AGE_S}` },
  },
  {
    path: "/widget/demo",
    file: "widget-demo.html",
    type: "text/html; charset=utf-8",
    summary: "A page to try the chat bubble on",
    headers: { "content-security-policy": demoPolicy },
  },
  { path: "/widget/demo.js", file: "widget-demo.js", type: "text/javascript; charset=utf-8", summary: "Its script" },
  { path: "/widget/demo.css", file: "widget-demo.css", type: "text/css; charset=utf-8", summary: "Its style" },
];

function toRoute({ path, file, type, summary, headers }: Asset): AnyRoute {
  let content: Promise<string> | undefined;
  return route({
    method: "get",
    path,
    auth: "public",
    tags,
    summary,
    responses: { 200: { description: "The file", body: z.string(), contentType: type.split(";")[0] ?? type } },
    async handler() {
      content ??= readFile(new URL(`../pages/${file}`, import.meta.url), "utf8");
      return { status: 200, body: await content, headers: { ...headers, "content-type": type } };
    },
  });
}

export const widgetRoutes: readonly AnyRoute[] = assets.map(toRoute);
