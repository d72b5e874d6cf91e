import { queryBodySchema } from "../rag/schemas.ts";
import { tool } from "./tool.ts";

export const ragQueryTool = tool({
  name: "svc_rag_query",
  description:
    "Search the ingested documents by meaning and words. Gives passages, best first, each with its document, title, page and score.",
  role: "member",
  input: queryBodySchema,
  async run({ platform, caller, signal }, given) {
    return { results: await platform.rag.query(caller, given, signal) };
  },
});
