import { readFile } from "node:fs/promises";
import { z } from "zod";
import { type AnyRoute, route } from "./route.ts";

/** A file of `api/pages`, served as it is. */
export type Asset = {
  path: string;
  file: string;
  type: string;
  summary: string;
  /** Of the path's parameters, which the page itself reads. */
  params?: z.ZodObject;
  headers?: Record<string, string>;
};

/** What a page may load: what this server gives it, and nothing inline. */
export const pagePolicy = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
};

/** The route of an asset. Everybody may load it: it holds no data, which a page asks for with its reader's key. */
export function assetRoute(tags: readonly string[], { path, file, type, summary, params, headers }: Asset): AnyRoute {
  let content: Promise<string> | undefined;
  return route({
    method: "get",
    path,
    auth: "public",
    tags,
    summary,
    ...(params === undefined ? {} : { params }),
    responses: { 200: { description: "The file", body: z.string(), contentType: type.split(";")[0] ?? type } },
    async handler() {
      content ??= readFile(new URL(`./pages/${file}`, import.meta.url), "utf8");
      return { status: 200, body: await content, headers: { ...headers, "content-type": type } };
    },
  });
}
