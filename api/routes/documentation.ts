import { z } from "zod";
import { inSlices } from "../../src/lib/in-slices.ts";
import { renderDocsPage } from "../docs-page.ts";
import { makeOpenApi } from "../openapi.ts";
import { type AnyRoute, declareRoutes, type HandlerInput, type JsonReply } from "../route.ts";
import { type Packed, pack, pageHeaders, toPackedReply } from "./pages.ts";

/** A file that is made at its first request, in slices, and served compressed to clients that accept that. */
function makeOnce(make: () => Generator<void, string>, headers: Record<string, string>) {
  let made: Promise<Packed> | undefined;
  return async function serve({ header }: HandlerInput): Promise<JsonReply> {
    made ??= inSlices(make())
      .then(pack)
      .catch((error: unknown) => {
        made = undefined; // the next request tries again
        throw error;
      });
    return toPackedReply(await made, { header, headers });
  };
}

const routes = declareRoutes({ auth: "public", tags: ["Documentation"] });

/** The routes that document `documented` and themselves. */
export function documentationRoutes(documented: readonly AnyRoute[]): readonly AnyRoute[] {
  const makeDocument = () => makeOpenApi([...documented, ...documentation]);
  const writeDocument = function* () {
    return JSON.stringify(yield* makeDocument());
  };
  const renderDocument = function* () {
    return yield* renderDocsPage(yield* makeDocument());
  };
  const headers = { "if-none-match": "The `ETag` of the version that you have" };
  const unchanged = { 304: { description: "The version that you have is current" } };
  const documentation: readonly AnyRoute[] = [
    routes.get("/openapi.json", {
      summary: "This API as an OpenAPI 3.1 document",
      headers,
      responses: { 200: { description: "The document", body: z.looseObject({ openapi: z.string() }) }, ...unchanged },
      handler: makeOnce(writeDocument, { "content-type": "application/json; charset=utf-8" }),
    }),
    routes.get("/docs", {
      summary: "The reference as a page for people",
      headers,
      responses: { 200: { description: "The page", body: z.string(), contentType: "text/html" }, ...unchanged },
      handler: makeOnce(renderDocument, pageHeaders),
    }),
  ];
  return documentation;
}
