import { type Attack, type Field, flood, idOf } from "../attack.ts";

const numbers = Array.from({ length: 130 }, (_, n) => n);

/** Makes a workflow and runs it again and again; one that is refused is submitted again and again. */
function workflow(name: string, about: string, attack: { definition: object; input: unknown; lanes: number }): Attack {
  return {
    name,
    about,
    async run({ member, signal }: Field) {
      const made = await member.call("POST", "/workflows", { json: attack.definition });
      if (made.status !== 201) {
        return flood(signal, attack.lanes, () => member.call("POST", "/workflows", { json: attack.definition }));
      }
      const path = `/workflows/${idOf(made, "workflowId")}/execute`;
      await flood(signal, attack.lanes, () => member.call("POST", path, { json: { input: attack.input } }));
    },
  };
}

const slow = "{{input.l.all(a,input.l.all(b,a!=b+999))}}";
const doubling = Object.fromEntries(
  Array.from({ length: 26 }, (_, n) => {
    const next = { $ref: `#/$defs/d${n + 1}` };
    return [`d${n}`, { anyOf: [{ type: "array", items: next }, { allOf: [next, next] }] }];
  }),
);
const wait = { type: "human_approval", assigneeRole: "admin", timeoutMs: 1_000 };

export const workflowAttacks: readonly Attack[] = [
  workflow("templates", "templates of thousands of slow expressions", {
    definition: {
      name: "templates",
      steps: [
        { type: "ai_completion", model: "meta-llm", prompt: slow.repeat(4_738), systemPrompt: slow.repeat(4_738) },
      ],
    },
    input: { l: numbers },
    lanes: 4,
  }),
  workflow("few-slow-templates", "a template of as many slow expressions as are allowed", {
    definition: { name: "few", steps: [{ type: "human_approval", assigneeRole: "admin", message: slow.repeat(90) }] },
    input: { l: numbers },
    lanes: 8,
  }),
  workflow("doubling-schema", "an input's schema that doubles its work at each of 26 levels", {
    definition: {
      name: "schema",
      inputSchema: { $defs: { ...doubling, d26: { type: "string" } }, $ref: "#/$defs/d0" },
      steps: [wait],
    },
    input: 1,
    lanes: 10,
  }),
  workflow("slow-pattern", "an input's schema with a pattern that backtracks", {
    definition: {
      name: "pattern",
      inputSchema: { type: "string", pattern: "^(a+)+$" },
      steps: [wait],
    },
    input: `${"a".repeat(40)}!`,
    lanes: 10,
  }),
];
