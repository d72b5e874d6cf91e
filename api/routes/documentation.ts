import { gzipSync } from "node:zlib";
import { z } from "zod";
import { renderDocsPage } from "../docs-page.ts";
import { makeOpenApi } from "../openapi.ts";
import { type AnyRoute, declareRoutes, type HandlerInput, type JsonReply } from "../route.ts";
import { etagOf, isNamed } from "./models.ts";
import { pageHeaders } from "./pages.ts";

/** A file that is made at its first request, and served compressed to clients that accept that. */
function makeOnce(make: () => string, headers: Record<string, string>) {
  let made: ReturnType<typeof pack> | undefined;
  return function serve({ header }: HandlerInput): JsonReply {
    made ??= pack(make());
    const { text, zipped, etag } = made;
    const caching = { ...headers, etag, "cache-control": "no-cache", vary: "accept-encoding" };
    if (isNamed(header("if-none-match"), etag)) return { status: 304, headers: caching };
    const takesGzip = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/.test(header("accept-encoding") ?? "");
    if (!takesGzip) return { status: 200, headers: caching, body: text };
    return { status: 200, headers: { ...caching, "content-encoding": "gzip" }, body: zipped };
  };
}

function pack(text: string) {
  return { text, zipped: gzipSync(text), etag: etagOf(text) };
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
