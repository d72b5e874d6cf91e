import { guardKinds } from "../../../../src/guards/guard.ts";
import { makeDeck, makeWorkbook, shape } from "../../../support/office-files.ts";
import { type Attack, type Field, flood, idOf, ingestFile, prepared, toForm } from "../attack.ts";
import { addOwnModel, speaking } from "../own-model.ts";

const SCHEMA_LEVELS = 5;
const CALLS_OF_AN_ANSWER = 16;
const TREE_DEPTH = 3;

/** A schema of five levels, each of which refers to the next one so many times. */
function manyReferences(count: number) {
  const levels = Array.from({ length: SCHEMA_LEVELS }, (_, n) => {
    const allOf = Array.from({ length: count }, () => ({ $ref: `#/$defs/d${n + 1}` }));
    return [`d${n}`, { allOf }];
  });
  const $defs = {
    ...Object.fromEntries(levels),
    [`d${SCHEMA_LEVELS}`]: { type: "object", properties: { a: { type: "string" } } },
  };
  return { $defs, $ref: "#/$defs/d0" };
}

/** A tree of agents, each of which asks for the one below it in every answer. Returns the id of the uppermost. */
async function makeTree(field: Field): Promise<string> {
  const model = await addOwnModel(
    field,
    speaking(({ tools }) => {
      const [tool] = tools;
      if (!tool) return { text: "Done." };
      const call = { name: tool.function.name, arguments: { input: "Well?" } };
      return { calls: Array.from({ length: CALLS_OF_AN_ANSWER }, () => call) };
    }),
  );
  let agentId: string | undefined;
  for (let depth = 0; depth <= TREE_DEPTH; depth += 1) {
    const tools = agentId === undefined ? [] : [{ type: "agent", name: "next", config: { agentId } }];
    const json = { name: `depth ${depth}`, model, systemPrompt: "Go.", tools, maxIterations: 50 };
    agentId = idOf(await field.member.call("POST", "/agents", { json }), "agentId");
  }
  return agentId ?? "";
}

/** Files of requests of lines as short as can be: empty ones, ones without a meaning, and ones that are right. */
const makeShortLines = () => [
  "\n".repeat(25_000_000),
  "{}\n".repeat(8_000_000),
  Array.from({ length: 50_000 }, (_, n) => {
    const body = { model: "meta-llm", messages: [{ role: "user", content: "a" }] };
    return JSON.stringify({ custom_id: `${n}`, method: "POST", url: "/v1/chat/completions", body });
  }).join("\n"),
];

/** A text of what guards look at longest; another one each turn. */
function identifiers(turn: number, characters: number): string {
  const units = ["123-45-", "dob 12 march ", "MRN: ", "four one one one ", "NDExMTEx", "call +1 (212) 555-01, "];
  const unit = units[turn % units.length] ?? "";
  return unit.repeat(characters / unit.length);
}

const binary = "application/octet-stream";
/** Documents of Office that are small, and have 150 MB once they are unpacked. */
const inflatingOffice = [
  {
    make: () => makeWorkbook([{ name: "S", rows: `<row>${"<c><v>1</v></c>".repeat(10_000_000)}</row>` }]),
    name: "cells.xlsx",
  },
  {
    make: () => {
      const rows = '<row><c t="s"><v>0</v></c></row>'.repeat(200_000);
      return makeWorkbook([{ name: "S", rows }], { strings: `<si><t>${"a ".repeat(16_000)}</t></si>` });
    },
    name: "texts.xlsx",
  },
  { make: () => makeDeck([{ shapes: shape("a").repeat(600_000) }]), name: "shapes.pptx" },
];

/** Attacks by what is small when it comes, and large once it is worked on. */
export const multiplyingAttacks: readonly Attack[] = [
  {
    name: "many-references",
    about: "formats of responses whose `allOf` refers to the next level 20, 60 and 1,000 times, on five levels",
    run: ({ member, signal }) => {
      const bodies = [20, 60, 1_000].map((count) => ({
        messages: [{ role: "user", content: "Fill in." }],
        response_format: { type: "json_schema", json_schema: { name: "s", schema: manyReferences(count) } },
      }));
      return flood(signal, 8, (turn) =>
        member.call("POST", "/v1/chat/completions", { json: { model: "meta-llm", ...bodies[turn % bodies.length] } }),
      );
    },
  },
  {
    name: "filled-arguments",
    about: "a chat of 390 kB and a tool with 400 fields, each of which the built-in model fills with the chat",
    run: ({ member, signal }) => {
      const names = Array.from({ length: 400 }, (_, n) => `field${n}`);
      const properties = Object.fromEntries(names.map((name) => [name, { type: "string" }]));
      const json = {
        model: "meta-llm",
        messages: [{ role: "user", content: "word ".repeat(78_000) }],
        tools: [{ type: "function", function: { name: "keep", parameters: { properties, required: names } } }],
        tool_choice: { type: "function", function: { name: "keep" } },
      };
      return flood(signal, 4, () => member.call("POST", "/v1/chat/completions", { json }));
    },
  },
  prepared({
    name: "agent-trees",
    about: "runs of agents that ask for 16 further runs in each answer, three levels deep",
    prepare: makeTree,
    run: ({ member, signal }, agentId) => {
      const about = { json: { input: "Go." }, headers: { prefer: "respond-async" } };
      return flood(signal, 16, () => member.call("POST", `/agents/${agentId}/run`, about));
    },
  }),
  prepared({
    name: "short-lines",
    about: "batches of files of 8 and 25 million lines of nothing, and of 50,000 short ones",
    async prepare({ member }) {
      const ids: string[] = [];
      for (const bytes of makeShortLines()) {
        const form = await toForm({ bytes, type: "application/jsonl", name: "lines.jsonl" }, { purpose: "batch" });
        const headers = { "content-type": form.type };
        ids.push(idOf(await member.call("POST", "/v1/files", { body: form.body, headers }), "id"));
      }
      return ids;
    },
    run: ({ member, signal }, ids) =>
      flood(signal, 4, (turn) => {
        const file = { input_file_id: ids[turn % ids.length] };
        const json = { ...file, endpoint: "/v1/chat/completions", completion_window: "24h" };
        return member.call("POST", "/v1/batches", { json });
      }),
  }),
  prepared({
    name: "inflating-office",
    about: "workbooks and slides that inflate to 150 MB, three at a time",
    prepare: () =>
      Promise.all(
        inflatingOffice.map(({ make, name }) => toForm({ bytes: new Uint8Array(make()), type: binary, name })),
      ),
    run: ({ member, signal }, forms) =>
      flood(signal, 3, async (turn) => {
        const form = forms[turn % forms.length];
        return form ? ingestFile(member, form) : { status: 0, text: "" };
      }),
  }),
  {
    name: "published-tools",
    about: "lists of 99 published tools with schemas of 31 kB, in 8 lanes",
    async prepare({ owner }) {
      const properties = Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`field${n}`, { type: "string" }]));
      for (let n = 0; n < 99; n += 1) {
        const publish = { name: `tool_${n}`, description: "A tool." };
        const steps = [{ type: "rag_query", query: "x" }];
        const json = { name: `tool ${n}`, steps, inputSchema: { type: "object", properties }, publish };
        idOf(await owner.call("POST", "/workflows", { json }), "workflowId");
      }
    },
    run: ({ member, signal }) =>
      flood(signal, 8, () =>
        member.call("POST", "/mcp", { json: { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} } }),
      ),
  },
  {
    name: "guarded-texts",
    about: "inputs of a regulated profile, as long as they may be, that look like identifiers from end to end",
    run: ({ member, signal }) => {
      return flood(signal, 8, (turn) => {
        const input = `${identifiers(turn, 60_000)} SSN 219-09-9999`;
        const json = { pattern: "chain-of-thought", profile: "healthcare", input };
        return member.call("POST", "/composite/execute", { json });
      });
    },
  },
  {
    name: "guarded-by-own-policy",
    about: "chats of 60 kB and documents of 2 MB that look like identifiers, of a tenant whose policy masks all kinds",
    async prepare({ owner }) {
      const places = { input: "mask", output: "mask", ingest: "mask", log: "mask" };
      const rules = Object.fromEntries(guardKinds.map((kind) => [kind, places]));
      const { status, text } = await owner.call("PUT", "/guards", { json: { rules } });
      if (status !== 200) throw new Error(`an attack could not be prepared: ${status} ${text}`);
    },
    run: ({ member, signal }) =>
      flood(signal, 16, (turn) => {
        if (turn % 8 === 0) {
          const json = { title: `document ${turn}`, content: identifiers(turn, 2_000_000) };
          return member.call("POST", "/rag/ingest", { json, headers: { prefer: "respond-async" } });
        }
        const messages = [{ role: "user", content: `${identifiers(turn, 60_000)} ${turn}` }];
        return member.call("POST", "/v1/chat/completions", { json: { model: "meta-llm", messages } });
      }),
  },
];
