import { type Asset, assetRoute, pagePolicy } from "../asset.ts";
import type { AnyRoute } from "../route.ts";

/** How long a page's browser may keep the script, in seconds. */
const SCRIPT_MAX_AGE_S = 3_600;

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
    headers: pagePolicy,
  },
  { path: "/widget/demo.js", file: "widget-demo.js", type: "text/javascript; charset=utf-8", summary: "Its script" },
  { path: "/widget/demo.css", file: "widget-demo.css", type: "text/css; charset=utf-8", summary: "Its style" },
];

export const widgetRoutes: readonly AnyRoute[] = assets.map((asset) => assetRoute(["Widget"], asset));
