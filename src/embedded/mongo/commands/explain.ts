import { isDocument } from "../bson-types.ts";
import type { Document } from "../codec.ts";
import { type CommandContext, type CommandFamily, findCollection, readDocument, readDocuments } from "../command.ts";
import { notOffered } from "../command-error.ts";
import { explainExecution, explainQuery } from "../explain.ts";
import type { Query } from "../query.ts";
import { typeMismatch } from "../refusals.ts";
import { readPipeline, splitPipeline } from "./aggregate.ts";
import { readFind } from "./find.ts";

export const explainCommands: CommandFamily = { explain: { fields: ["verbosity"], run: explain } };

const verbosities: readonly unknown[] = ["queryPlanner", "executionStats"];

function explain(context: CommandContext, body: Document): Document {
  const inner: unknown = body.explain;
  if (!isDocument(inner)) throw typeMismatch("BSON field 'explain.explain' is the wrong type, expected type 'object'");
  const verbosity: unknown = body.verbosity;
  if (!verbosities.includes(verbosity)) throw notOffered(`the verbosity ${String(verbosity)} of explain`);
  const name = Object.keys(inner)[0] ?? "";
  const collection = findCollection(context, name, inner[name]);
  const query = readQuery(name, inner);
  const winningPlan = explainQuery(collection, query);
  return {
    explainVersion: "1",
    queryPlanner: {
      namespace: `${context.db}.${String(inner[name])}`,
      parsedQuery: query.filter,
      winningPlan,
      rejectedPlans: [],
    },
    ...(verbosity === "queryPlanner" ? {} : { executionStats: explainExecution(collection, query) }),
    command: inner,
    serverInfo: { host: "localhost", version: "7.0.0" },
  };
}

/** The query inside a command that can be explained. */
function readQuery(name: string, inner: Document): Query {
  switch (name) {
    case "find":
      return readFind(inner).query;
    case "aggregate":
      return splitPipeline(readPipeline(inner)).query;
    case "findAndModify":
      return { filter: readDocument(inner, "query"), limit: 1 };
    case "update":
    case "delete": {
      const [statement] = readDocuments(inner, name === "update" ? "updates" : "deletes");
      return { filter: readDocument(statement ?? {}, "q") };
    }
    default:
      throw notOffered(`explain of ${name}`);
  }
}
