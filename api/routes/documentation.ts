import { z } from "zod";
import { renderDocsPage } from "../docs-page.ts";
import { makeOpenApi } from "../openapi.ts";
import { type Packed, pack, toPackedReply } from "../packed-reply.ts";
import { type AnyRoute, declareRoutes, type HandlerInput, type JsonReply } from "../route.ts";
import { pageHeaders } from "./pages.ts";

/** A file that is made at its first request, and served compressed to clients that accept that. */
function makeOnce(make: () => string, headers: Record<string, string>) {
  let made: Packed | undefined;
  return function serve({ header }: HandlerInput): JsonReply {
    made ??= pack(make());
    return toPackedReply(made, { header, headers });
  };
}

const routes = declareRoutes({ auth: "public", tags: ["Documentation"] });

/** The routes that document `documented` and themselves. */
export function documentationRoutes(documented: readonly AnyRoute[]): readonly AnyRoute[] {
  const makeDocument = () => makeOpenApi([...documented, ...documentation]);
  const headers = { "if-none-match": "The `ETag` of the version that you have" };
  const unchanged = { 304: { description: "The version that you have is current" } };
  const documentation: readonly AnyRoute[] = [
    routes.get("/openapi.json", {
      summary: "This API as an OpenAPI 3.1 document",
      headers,
      responses: { 200: { description: "The document", body: z.looseObject({ openapi: z.string() }) }, ...unchanged },
      handler: makeOnce(() => JSON.stringify(makeDocument()), { "content-type": "application/json; charset=utf-8" }),
    }),
    routes.get("/docs", {
      summary: "The reference as a page for people",
      headers,
      responses: { 200: { description: "The page", body: z.string(), contentType: "text/html" }, ...unchanged },
      handler: makeOnce(() => renderDocsPage(makeDocument()), pageHeaders),
    }),
  ];
  return documentation;
}
