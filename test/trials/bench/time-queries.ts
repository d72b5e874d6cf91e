import { createRequire } from "node:module";
import { Agent, request } from "undici";
import { embedOffline } from "../../../src/gateway/providers/edge/offline-embed.ts";
import { dimensions } from "./fill-chunks.ts";

export const topK = 10;

/** Texts of queries: none is asked twice, so that no cache stands in for the search. */
export const queryText = (index: number, round: number | string) => `how does part ${index} of a queue work ${round}`;

/** Calls of one client over one connection, which return their time in ms. */
export function makeClient(url: string, headers: Record<string, string>) {
  const dispatcher = new Agent({ connections: 1 });
  const post = async (path: string, body: object) => {
    const started = performance.now();
    const response = await request(`${url}${path}`, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
      dispatcher,
    });
    const text = await response.body.text();
    if (response.statusCode !== 200) throw new Error(`${path} responded ${response.statusCode}: ${text}`);
    if (path === "/rag/query" && (JSON.parse(text) as { results: unknown[] }).results.length !== topK)
      throw new Error(`${path} returned fewer results than it should: ${text}`);
    return performance.now() - started;
  };
  return {
    query: (query: string, where: object) => post("/rag/query", { query, topK, mode: "vector", ...where }),
    /** What any call over HTTP costs. */
    floor: (query: string) => post("/bench/floor", { query }),
    close: () => dispatcher.close(),
  };
}

/** The bare exact search by usearch, in one thread; a call returns its time in ms. */
export function makeScan(matrix: Float32Array): (text: string) => number {
  const usearch = createRequire(import.meta.url)("usearch");
  const run = usearch.exactSearch as (...args: unknown[]) => unknown;
  return (text) => {
    const [query] = embedOffline([text], dimensions);
    const started = performance.now();
    run(matrix, query, dimensions, topK, usearch.MetricKind.Cos, 1);
    return performance.now() - started;
  };
}
