import { createHash } from "node:crypto";
import { z } from "zod";
import { listedModelSchema, modelQuerySchema } from "../../src/gateway/schemas.ts";
import { totalHeader } from "../list-query.ts";
import { declareRoutes } from "../route.ts";

/** How long clients may keep the list, in seconds. */
const MAX_AGE_SECONDS = 300;

const routes = declareRoutes({ auth: "member", tags: ["Gateway"] });

export const modelRoutes = [
  routes.get("/ai/models", {
    summary: "Models with their prices",
    description: "May be kept for 5 minutes; afterwards ask with `If-None-Match`.",
    query: modelQuerySchema,
    headers: { "if-none-match": "The `ETag` of the list that you have" },
    responses: {
      200: { description: "The models", body: z.object({ models: z.array(listedModelSchema) }), headers: totalHeader },
      304: { description: "The list that you have is current" },
    },
    async handler({ query, caller, platform, header }) {
      const models = await platform.gateway.models(caller.tenantId, query);
      const etag = etagOf(JSON.stringify(models));
      const headers = { "cache-control": `private, max-age=${MAX_AGE_SECONDS}`, etag };
      if (isNamed(header("if-none-match"), etag)) return { status: 304, headers };
      return { status: 200, headers: { ...headers, "x-total-count": String(models.length) }, body: { models } };
    },
  }),
];

export const etagOf = (text: string) => `"${createHash("sha256").update(text).digest("base64url").slice(0, 22)}"`;

/** Whether `If-None-Match` names the tag; weak tags compare equal (RFC 9110, 13.1.2). */
export function isNamed(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header.split(",").some((tag) => tag.trim() === "*" || tag.trim().replace(/^W\//, "") === etag);
}
