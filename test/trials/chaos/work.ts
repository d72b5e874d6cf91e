import { canaries, isBlocking, sownFor } from "./canaries.ts";
import type { TenantClient } from "./client.ts";
import { isComposedRight } from "./composed.ts";
import { models } from "./models.ts";
import type { Ticket } from "./tickets.ts";

export type Tenant = {
  number: number;
  tenantId: string;
  agentId: string;
  buyerId: string;
  workflowId: string;
  /** The workflow that has every type of step; empty if nobody runs it. */
  composedId: string;
  client: TenantClient;
};

const later = { prefer: "respond-async" };

/** Calls that the guards of a tenant refuse; none if they block nothing. */
export function refusedCalls({ text, tenant }: Ticket, { agentId, workflowId }: Tenant): Submission[] {
  if (!isBlocking(tenant)) return [];
  const said = `${text} has the SSN ${canaries.blocked}.`;
  return [
    { path: "/rag/ingest", headers: later, body: { title: text, content: said } },
    { path: `/agents/${agentId}/run`, headers: later, body: { input: said } },
    { path: `/workflows/${workflowId}/execute`, body: { input: { ticket: text, note: said } } },
    {
      path: "/ai/chat",
      body: { model: models.batch, prefer_async: true, messages: [{ role: "user", content: said }] },
    },
    { path: "/ai/chat", body: { model: models.chat, messages: [{ role: "user", content: said }] } },
    { path: "/v1/responses", body: { model: models.chat, input: said } },
  ];
}

type Submission = { path: string; body: unknown; headers?: Record<string, string> };

/** A kind of work that is a job: how it is submitted, and what its result must hold. */
type JobWork = {
  /** How often it comes among the others. */
  share: number;
  submit(ticket: Ticket, tenant: Tenant, random: () => number): Submission;
  /** Whether the result of a completed job is that of its ticket. */
  isRight(result: unknown, ticket: string): boolean;
};

const waits = { prefer: "wait=5" };
const holds = (result: unknown, field: string, text: string) =>
  String(typeof result === "object" && result !== null ? Reflect.get(result, field) : "").includes(text);

/** Every kind of job of the load. Another kind is one more entry. */
export const jobWorks = {
  ingestion: {
    share: 4,
    submit: ({ text, tenant }, _tenant, random) => ({
      path: "/rag/ingest",
      headers: random() < 0.5 ? later : waits,
      body: {
        title: `${text}${sownFor(tenant)}`,
        content: `# ${text}${sownFor(tenant)}\n\n${`The file of ${text}: customer ${tenant} asked about valve ${text}.${sownFor(tenant)} `.repeat(5 + Math.floor(random() * 60))}`,
      },
    }),
    isRight: (result) => holds(result, "status", "indexed"),
  },
  agent: {
    share: 3,
    submit: ({ text, tenant }, { agentId }) => ({
      path: `/agents/${agentId}/run`,
      headers: later,
      body: { input: `Order ${text}.${sownFor(tenant)}` },
    }),
    isRight: (result, ticket) => holds(result, "output", ticket),
  },
  purchase: {
    share: 2,
    submit: ({ text, tenant }, { buyerId }) => ({
      path: `/agents/${buyerId}/run`,
      headers: later,
      body: { input: `Buy ${text}.${sownFor(tenant)}` },
    }),
    isRight: (result, ticket) => holds(result, "output", ticket),
  },
  workflow: {
    share: 3,
    submit: ({ text, tenant }, { workflowId }) => ({
      path: `/workflows/${workflowId}/execute`,
      body: { input: { ticket: text, note: sownFor(tenant) } },
    }),
    isRight: (result, ticket) => holds(result, "output", ticket),
  },
  composed: {
    share: 1,
    submit: ({ text }, { composedId }) => ({
      path: `/workflows/${composedId}/execute`,
      body: { input: { ticket: text } },
    }),
    isRight: isComposedRight,
  },
  batch: {
    share: 3,
    submit: ({ text, tenant }) => ({
      path: "/ai/chat",
      body: {
        model: models.batch,
        prefer_async: true,
        messages: [{ role: "user", content: `What of ${text}?${sownFor(tenant)}` }],
      },
    }),
    isRight: (result, ticket) => holds(result, "text", ticket),
  },
  composite: {
    share: 1,
    submit: ({ text, tenant }) => ({
      path: "/composite/execute",
      headers: later,
      body: {
        pattern: "chain-of-thought",
        profile: "support",
        input: `What of ${text}?${sownFor(tenant)}`,
        models: [models.composite],
      },
    }),
    isRight: (result, ticket) => holds(result, "output", ticket),
  },
} as const satisfies Record<string, JobWork>;
export type JobWorkName = keyof typeof jobWorks;
export const jobWorkNames = Object.keys(jobWorks) as JobWorkName[]; // its own keys

export const chatCall = ({ text, tenant }: Ticket) => ({
  path: "/ai/chat",
  body: { model: models.chat, messages: [{ role: "user", content: `What of ${text}?${sownFor(tenant)}` }] },
});

/** The agent of a tenant: it orders at the shop and looks into the tenant's documents. */
export const agentBody = (host: string) => ({
  name: "Clerk",
  model: models.agent,
  systemPrompt: "You order what you are asked to.",
  tools: [{ type: "http_request", config: { allowedHosts: [host], methods: ["POST"] } }, { type: "rag_query" }],
});

/** Calls of a purchase that are made at once; each needs an approval. */
export const PARTS = 2;

/** Another agent of a tenant: it buys in parts, each of which somebody has to approve. */
export const buyerBody = (host: string) => ({
  name: "Buyer",
  model: models.agent,
  systemPrompt: "You buy what you are asked to.",
  allowSelfApproval: true,
  tools: [
    {
      type: "http_request",
      name: "buy",
      config: { allowedHosts: [host], methods: ["POST"] },
      approval: { assigneeRole: "owner", message: "Buy this part?" },
    },
  ],
});

/** The workflow of a tenant: it orders at the shop, waits for somebody to agree, and writes a note. */
export const workflowBody = (origin: string) => ({
  name: "Order",
  steps: [
    {
      type: "webhook",
      url: `${origin}/orders/{{ input.ticket }}`,
      method: "POST",
      body: { ticket: "{{ input.ticket }}", note: "{{ input.note }}" },
    },
    { type: "human_approval", assigneeRole: "owner", message: "Keep the order {{ input.ticket }}?" },
    { type: "ai_completion", model: models.workflow, prompt: "What of {{ input.ticket }}?{{ input.note }}" },
  ],
});
