import type { z } from "zod";
import * as agents from "../src/agents/schemas.ts";
import * as approvals from "../src/approvals/schemas.ts";
import * as composite from "../src/composite/schemas.ts";
import * as embeddings from "../src/gateway/embeddings-schemas.ts";
import * as messages from "../src/gateway/message-schemas.ts";
import { listedModelSchema } from "../src/gateway/model-schemas.ts";
import * as gateway from "../src/gateway/schemas.ts";
import { errorViewSchema, jobSummarySchema, jobViewSchema } from "../src/jobs/job-view.ts";
import { type JsonSchema, toJsonSchema } from "../src/lib/json-schema.ts";
import { readinessSchema } from "../src/observe/health.ts";
import * as ragQuery from "../src/rag/query-schemas.ts";
import * as rag from "../src/rag/schemas.ts";
import * as openai from "../src/surfaces/chat-completions/openai-schemas.ts";
import * as messagesApi from "../src/surfaces/messages/schemas.ts";
import * as responsesRequest from "../src/surfaces/responses/request-schemas.ts";
import * as responses from "../src/surfaces/responses/response-schemas.ts";
import { apiKeyViewSchema } from "../src/tenancy/api-keys.ts";
import * as workflows from "../src/workflows/schemas.ts";

/** Schemas of `src` by the names that they have in the documentation. Those that a route makes are `named` there. */
const names = new Map<z.core.$ZodType, string>(
  Object.entries({
    ChatRequest: gateway.chatBodySchema,
    ContentPart: messages.contentPartSchema,
    ReasoningDetails: messages.reasoningDetailsSchema,
    ToolCall: messages.toolCallSchema,
    Model: listedModelSchema,
    EmbeddingsRequest: embeddings.embeddingsBodySchema,
    EmbeddingsResponse: embeddings.embeddingsResponseSchema,
    OpenAiChatRequest: openai.openAiChatBodySchema,
    OpenAiChatCompletion: openai.openAiCompletionSchema,
    OpenAiChatEvent: openai.openAiEventSchema,
    ResponsesInputItem: responsesRequest.inputItemSchema,
    ResponseObject: responses.responseObjectSchema,
    ResponseEvent: responses.responseEventSchema,
    ResponseOutputItem: responses.outputItemSchema,
    MessageRequest: messagesApi.messagesBodySchema,
    Message: messagesApi.messageSchema,
    MessageEvent: messagesApi.messageEventSchema,
    MessageTokensRequest: messagesApi.countTokensBodySchema,
    MessageTokens: messagesApi.tokensCountSchema,
    AnthropicError: messagesApi.apiErrorSchema,
    DocumentWarning: rag.documentWarningSchema,
    IngestResult: rag.ingestResultSchema,
    Document: rag.documentViewSchema,
    QueryRequest: ragQuery.queryBodySchema,
    QueryResult: ragQuery.queryResultSchema,
    AgentRequest: agents.agentBodySchema,
    AgentReplacement: agents.agentReplacementSchema,
    Agent: agents.agentViewSchema,
    AgentSummary: agents.agentSummarySchema,
    AgentRunResult: agents.runResultSchema,
    AgentRunSummary: agents.runSummarySchema,
    AgentRun: agents.runViewSchema,
    WorkflowRequest: workflows.workflowBodySchema,
    WorkflowReplacement: workflows.workflowReplacementSchema,
    Workflow: workflows.workflowViewSchema,
    WorkflowSummary: workflows.workflowSummarySchema,
    WorkflowRunResult: workflows.workflowResultSchema,
    WorkflowRunSummary: workflows.workflowRunSummarySchema,
    WorkflowRun: workflows.workflowRunViewSchema,
    Approval: approvals.approvalViewSchema,
    ApprovalDetail: approvals.approvalDetailSchema,
    Decision: approvals.decisionBodySchema,
    DecisionResult: approvals.decisionResultSchema,
    CompositeResult: composite.compositeResultSchema,
    CompositeRun: composite.executionViewSchema,
    CompositePattern: composite.patternSchema,
    CompositeProfile: composite.profileSchema,
    Job: jobViewSchema,
    JobSummary: jobSummarySchema,
    JobError: errorViewSchema,
    ApiKey: apiKeyViewSchema,
    Readiness: readinessSchema,
  }).map(([name, schema]) => [schema, name]),
);

/** Gives a schema its name under `components.schemas`: generated clients have a type of this name. */
export function named<S extends z.ZodType>(name: string, schema: S): S {
  names.set(schema, name);
  return schema;
}

/** The name of a schema in the documentation, if it has one. */
export const nameOf = (schema: z.core.$ZodType): string | undefined => names.get(schema);

type Side = "input" | "output";

/** Schemas of a document: those with names are collected, and every use refers to them. */
export type Components = {
  schemas: Record<string, JsonSchema>;
  /** A reference to a schema, or the schema itself where neither it nor the caller has a name for it. */
  refer(schema: z.core.$ZodType, side: Side, fallbackName?: string): JsonSchema;
};

/** @throws Error for a name of two schemas: a reader could not see which one is meant. */
export function makeComponents(): Components {
  const schemas: Record<string, JsonSchema> = {};
  const owners = new Map<string, z.core.$ZodType>();
  /** The schema itself; named schemas in it become references. */
  const expand = (schema: z.core.$ZodType, side: Side) =>
    toJsonSchema(schema, side, (inner) => {
      const name = inner === schema ? undefined : names.get(inner);
      return name === undefined ? undefined : add(name, inner, side);
    });
  const add = (name: string, schema: z.core.$ZodType, side: Side): string => {
    const reference = `#/components/schemas/${name}`;
    const owner = owners.get(name);
    if (owner !== undefined && owner !== schema) throw new Error(`two schemas have the name ${name}`);
    if (owner !== undefined) return reference;
    owners.set(name, schema);
    schemas[name] = {}; // keeps the order of first use
    schemas[name] = expand(schema, side);
    return reference;
  };
  return {
    schemas,
    refer(schema, side, fallbackName) {
      const name = names.get(schema) ?? fallbackName;
      return name === undefined ? expand(schema, side) : { $ref: add(name, schema, side) };
    },
  };
}
