import type { Logger } from "../logger.ts";
import { type AgentRunStore, agentRunCollection, makeAgentRunStore } from "./agent-run-store.ts";
import { type AgentStore, agentCollection, makeAgentStore } from "./agent-store.ts";
import { type ApprovalStore, approvalCollection, makeApprovalStore } from "./approval-store.ts";
import { type AuditStore, auditCollection, makeAuditStore } from "./audit-store.ts";
import { backUpStore } from "./backup.ts";
import { type BatchStore, batchCollection, batchItemCollection, makeBatchStore } from "./batch-store.ts";
import { type BudgetStore, budgetCollection, makeBudgetStore } from "./budget-store.ts";
import { type CallbackStore, callbackCollection, makeCallbackStore } from "./callback-store.ts";
import { type ChunkStore, chunkCollection, makeChunkStore } from "./chunk-store.ts";
import type { StoreCapabilities } from "./collection.ts";
import { type CompletionStore, completionsCollection, makeCompletionStore } from "./completion-store.ts";
import { connectStore } from "./connect.ts";
import { migrateData } from "./data-version.ts";
import { type DocumentStore, documentCollection, makeDocumentStore } from "./document-store.ts";
import { type ExecutionStore, executionCollection, makeExecutionStore } from "./execution-store.ts";
import { type FileStore, fileBatchCollection, fileCollection, makeFileStore } from "./file-store.ts";
import { type IdempotencyStore, idempotencyCollection, makeIdempotencyStore } from "./idempotency-store.ts";
import { createIndexes } from "./indexes.ts";
import { type JobStore, jobCollection, makeJobStore } from "./job-store.ts";
import { type ApiKeyStore, apiKeyCollection, makeApiKeyStore } from "./key-store.ts";
import { migrations } from "./migrations.ts";
import { makeOrganizationStore, type OrganizationStore, organizationCollection } from "./organization-store.ts";
import {
  dataKeyCollection,
  makeProviderKeyStore,
  type ProviderKeyStore,
  providerKeyCollection,
} from "./provider-key-store.ts";
import { makeSourceStore, type SourceStore, sourceCollection } from "./source-store.ts";
import { makeTenantStore, type TenantStore, tenantCollection } from "./tenant-store.ts";
import { makeUsageStore, type UsageStore, usageCollection } from "./usage-store.ts";
import { checkSearchIndexes, ensureSearchIndexes } from "./vector-search.ts";
import { makeWebhookSecretStore, type WebhookSecretStore, webhookSecretCollection } from "./webhook-secret-store.ts";
import { makeWidgetKeyStore, type WidgetKeyStore, widgetKeyCollection } from "./widget-key-store.ts";
import {
  makeWorkflowRunStore,
  type WorkflowRunStore,
  workflowRunCollection,
  workflowStepCollection,
} from "./workflow-run-store.ts";
import { makeWorkflowStore, type WorkflowStore, workflowCollection } from "./workflow-store.ts";

/** Every repository of the product over one connection. */
export type Store = {
  capabilities: StoreCapabilities;
  jobs: JobStore;
  documents: DocumentStore;
  agents: AgentStore;
  agentRuns: AgentRunStore;
  audit: AuditStore;
  workflows: WorkflowStore;
  workflowRuns: WorkflowRunStore;
  approvals: ApprovalStore;
  webhookSecrets: WebhookSecretStore;
  callbacks: CallbackStore;
  executions: ExecutionStore;
  chunks: ChunkStore;
  sources: SourceStore;
  apiKeys: ApiKeyStore;
  providerKeys: ProviderKeyStore;
  widgetKeys: WidgetKeyStore;
  tenants: TenantStore;
  organizations: OrganizationStore;
  idempotency: IdempotencyStore;
  completions: CompletionStore;
  usage: UsageStore;
  budgets: BudgetStore;
  batches: BatchStore;
  files: FileStore;
  /** Answers within the store's time-out, or throws `unavailable`. */
  ping(): Promise<void>;
  /** Resolves when the search indexes, where the server has any, can be queried. Throws `unavailable` when not. */
  checkSearch(): Promise<void>;
  /** Copies the data of an embedded store to a new file while it works. */
  backUp(path: string): Promise<void>;
  close(): Promise<void>;
};

const declarations = [
  agentCollection,
  agentRunCollection,
  auditCollection,
  apiKeyCollection,
  batchCollection,
  batchItemCollection,
  fileBatchCollection,
  fileCollection,
  budgetCollection,
  callbackCollection,
  chunkCollection,
  completionsCollection,
  documentCollection,
  executionCollection,
  idempotencyCollection,
  jobCollection,
  organizationCollection,
  dataKeyCollection,
  providerKeyCollection,
  sourceCollection,
  tenantCollection,
  usageCollection,
  webhookSecretCollection,
  widgetKeyCollection,
  workflowCollection,
  workflowRunCollection,
  workflowStepCollection,
  approvalCollection,
];

/** The names of all collections. */
export const collectionNames: readonly string[] = declarations.map(({ name }) => name);

/**
 * Connects to MongoDB, creates what is declared and missing (collections, indexes, search indexes) and finds out what the
 * server can do.
 * @throws AppError `unavailable` when the server does not answer within `timeoutMs`; ConfigError when its data are newer.
 */
export async function openStore(options: {
  url: string;
  db: string;
  timeoutMs: number;
  logger: Logger;
}): Promise<Store> {
  const { db, ping, close } = await connectStore(options);
  try {
    await migrateData(db, { migrations, logger: options.logger });
    await createIndexes(db, declarations);
    const capabilities = await ensureSearchIndexes(db, { logger: options.logger });
    return {
      capabilities,
      jobs: makeJobStore(db),
      documents: makeDocumentStore(db),
      agents: makeAgentStore(db),
      agentRuns: makeAgentRunStore(db),
      audit: makeAuditStore(db),
      workflows: makeWorkflowStore(db),
      workflowRuns: makeWorkflowRunStore(db),
      approvals: makeApprovalStore(db),
      webhookSecrets: makeWebhookSecretStore(db),
      callbacks: makeCallbackStore(db),
      executions: makeExecutionStore(db),
      chunks: makeChunkStore(db, capabilities),
      sources: makeSourceStore(db),
      apiKeys: makeApiKeyStore(db),
      providerKeys: makeProviderKeyStore(db),
      widgetKeys: makeWidgetKeyStore(db),
      tenants: makeTenantStore(db),
      organizations: makeOrganizationStore(db),
      idempotency: makeIdempotencyStore(db),
      completions: makeCompletionStore(db),
      usage: makeUsageStore(db),
      budgets: makeBudgetStore(db),
      batches: makeBatchStore(db),
      files: makeFileStore(db),
      ping,
      checkSearch: async () => {
        if (capabilities.vectorSearch) await checkSearchIndexes(db);
      },
      backUp: (path) => backUpStore(db, path),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
