import { isDeepStrictEqual } from "node:util";
import { sownFor, withoutMarks } from "./canaries.ts";
import { models } from "./models.ts";
import { tenantOf } from "./tickets.ts";

/** Items of the list in the composed workflow. */
const ITEMS = [1, 2, 3];
/** The event that a composed run waits for, with its ticket. */
export const ARRIVED = "arrived";
/** The step that waits for it. */
export const ARRIVAL_STEP = "arrival";
/** Orders of a whole run: at its root, of its branch and its condition, of each item, of its agent, of the workflow within. */
export const COMPOSED_EFFECTS = 3 + ITEMS.length + 2;
/** What a whole run records: steps of the run, and of its list. */
export const COMPOSED_STEPS = { steps: 16, items: ITEMS.length * 3 };
/** Jobs that a whole run starts, by their kinds. */
export const COMPOSED_CHILDREN = ["agent", "composite", "workflow"];

const ticket = "{{ input.ticket }}";
const inputSchema = { type: "object", properties: { ticket: { type: "string" } }, required: ["ticket"] };

const orderOf = (origin: string) => (part: string) => ({
  type: "webhook",
  url: `${origin}/orders/${ticket}?part=${part}`,
  method: "POST",
  body: { ticket, part },
});
const ask = { type: "ai_completion", model: models.workflow, prompt: `What of ${ticket}?` };
const approval = { type: "human_approval", assigneeRole: "owner", message: `Go on with ${ticket}?` };

/** The workflow that the composed one runs. */
export const innerBody = (origin: string) => ({
  name: "Inner",
  inputSchema,
  steps: [approval, orderOf(origin)("inner"), { type: "set", values: { ticket } }],
});

/** A workflow with every type of step. */
export function composedBody(origin: string, { agentId, innerId }: { agentId: string; innerId: string }) {
  const order = orderOf(origin);
  const loop = { type: "for_each", id: "parts", items: "steps.names.output.parts", concurrency: 2 };
  const then = [order("then")];
  return {
    name: "Everything",
    inputSchema,
    steps: [
      { type: "set", id: "names", values: { ticket, parts: ITEMS } },
      order("root"),
      {
        type: "parallel",
        branches: {
          look: [{ type: "rag_query", query: `What is known of ${ticket}?`, topK: 2 }],
          order: [{ type: "wait", ms: 100 }, order("branch")],
        },
      },
      { ...loop, do: [order("{{ item }}"), ask] },
      { type: "condition", expression: `steps.parts.output.size() == ${ITEMS.length}`, then },
      { type: "agent", id: "clerk", agentId, input: `Order ${ticket}.` },
      {
        ...{ type: "composite", id: "many", pattern: "chain-of-thought", profile: "support" },
        ...{ input: `What of ${ticket}?`, models: [models.composite] },
      },
      { type: "workflow", id: "inner", workflowId: innerId, input: { ticket } },
      approval,
      { type: "wait", id: ARRIVAL_STEP, event: ARRIVED, match: { ticket } },
      { ...ask, id: "note" },
      {
        type: "set",
        values: {
          parts: "{{ steps.parts.output }}",
          clerk: "{{ steps.clerk.output }}",
          many: "{{ steps.many.output }}",
          inner: "{{ steps.inner.output.ticket }}",
          arrival: `{{ steps.${ARRIVAL_STEP}.output.data.ticket }}`,
          note: "{{ steps.note.output }}",
        },
      },
    ],
  };
}

/** Whether a composed run has the results of all its parts, and they are those of its ticket. */
export function isComposedRight(result: unknown, ticket: string): boolean {
  const settled = `Settled ${ticket}.${sownFor(tenantOf(ticket))}`;
  const { many, ...others } = JSON.parse(withoutMarks(JSON.stringify(Object(result).output ?? {})));
  const parts = ITEMS.map(() => settled);
  const expected = { parts, clerk: settled, inner: ticket, arrival: ticket, note: settled };
  return isDeepStrictEqual(others, expected) && String(many).includes(ticket);
}
