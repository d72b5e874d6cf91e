import { z } from "zod";
import { idSchema } from "../../src/ids.ts";
import { type Asset, assetRoute, pagePolicy } from "../asset.ts";
import type { AnyRoute } from "../route.ts";

const html = { type: "text/html; charset=utf-8", headers: pagePolicy };
const script = { type: "text/javascript; charset=utf-8" };

const assets: readonly Asset[] = [
  {
    path: "/runs/:runId",
    file: "run.html",
    summary: "A page that shows an agent's run as a timeline, live while it runs",
    params: z.object({ runId: idSchema("run") }),
    ...html,
  },
  {
    path: "/approvals",
    file: "approvals.html",
    summary: "A page that shows which decisions runs wait for, with each run so far, to decide there",
    ...html,
  },
  { path: "/pages/approvals.js", file: "approvals.js", summary: "Its script", ...script },
  { path: "/pages/run.js", file: "run.js", summary: "Its script", ...script },
  {
    path: "/pages/session.js",
    file: "session.js",
    summary: "How the pages call the API, with their reader's key",
    ...script,
  },
  { path: "/pages/page.css", file: "page.css", type: "text/css; charset=utf-8", summary: "The pages' style" },
];

export const pageRoutes: readonly AnyRoute[] = assets.map((asset) => assetRoute(["Pages"], asset));
