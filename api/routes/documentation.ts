import { z } from "zod";
import { docsPolicy, renderDocsPage } from "../docs-page.ts";
import { makeOpenApi, type OpenApiDocument } from "../openapi.ts";
import { type AnyRoute, route } from "../route.ts";

/** The routes that document `routes` and themselves. The document is made at the first request for it. */
export function documentationRoutes(routes: readonly AnyRoute[]): readonly AnyRoute[] {
  let made: OpenApiDocument | undefined;
  const document = () => {
    made ??= makeOpenApi([...routes, ...documentation]);
    return made;
  };
  const documentation = [
    route({
      method: "get",
      path: "/openapi.json",
      auth: "public",
      tags: ["Documentation"],
      summary: "This API as an OpenAPI 3.1 document",
      responses: { 200: { description: "The document", body: z.looseObject({ openapi: z.string() }) } },
      handler: () => ({ status: 200, body: document() }),
    }),
    route({
      method: "get",
      path: "/docs",
      auth: "public",
      tags: ["Documentation"],
      summary: "The reference as a page for people",
      responses: { 200: { description: "The page", body: z.string(), contentType: "text/html" } },
      handler: () => ({
        status: 200,
        body: renderDocsPage(document()),
        headers: { "content-type": "text/html; charset=utf-8", "content-security-policy": docsPolicy },
      }),
    }),
  ];
  return documentation;
}
