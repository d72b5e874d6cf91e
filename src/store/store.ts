import type { Db } from "mongodb";
import { newId } from "../ids.ts";
import type { Logger } from "../logger.ts";
import { agentRunCollection, makeAgentRunStore } from "./agent-run-store.ts";
import { agentCollection, makeAgentStore } from "./agent-store.ts";
import { approvalCollection, makeApprovalStore } from "./approval-store.ts";
import { auditCollection, makeAuditStore } from "./audit-store.ts";
import { batchCollection, batchItemCollection, makeBatchStore } from "./batch-store.ts";
import { budgetCollection, makeBudgetStore } from "./budget-store.ts";
import { callbackCollection, makeCallbackStore } from "./callback-store.ts";
import { chunkCollection, makeChunkStore } from "./chunk-store.ts";
import { collectionCollection, makeCollectionStore } from "./collection-store.ts";
import { completionsCollection, makeCompletionStore } from "./completion-store.ts";
import { connectStore } from "./connect.ts";
import { conversationCollection, makeConversationStore } from "./conversation-store.ts";
import { customProviderCollection, makeCustomProviderStore } from "./custom-provider-store.ts";
import { dataVersionOf, migrateData } from "./data-version.ts";
import { definitionVersionCollection, makeDefinitionVersionStore } from "./definition-version-store.ts";
import { documentCollection } from "./document-record.ts";
import { makeDocumentStore } from "./document-store.ts";
import { embeddingBatchCollection, makeEmbeddingBatchStore } from "./embedding-batch-store.ts";
import { executionCollection, makeExecutionStore } from "./execution-store.ts";
import { fileBatchCollection, fileCollection, makeFileStore } from "./file-store.ts";
import { idempotencyCollection, makeIdempotencyStore } from "./idempotency-store.ts";
import { jobCollection, makeJobStore } from "./job-store.ts";
import { apiKeyCollection, makeApiKeyStore } from "./key-store.ts";
import { migrations } from "./migrations.ts";
import { makeOperatorSessionStore, operatorSessionCollection } from "./operator-session-store.ts";
import { makeOrganizationStore, organizationCollection } from "./organization-store.ts";
import { dataKeyCollection, makeProviderKeyStore, providerKeyCollection } from "./provider-key-store.ts";
import { makeReindexStore, reindexCollection } from "./reindex-store.ts";
import { makeResponseEventStore, responseEventCollection } from "./response-event-store.ts";
import { makeResponseStore, responseCollection } from "./response-store.ts";
import { makeRetentionStore } from "./retention-store.ts";
import { makeSearchToolStore, searchToolCollection } from "./search-tool-store.ts";
import { makeSessionStore, sessionCollection } from "./session-store.ts";
import { makeSourceStore, sourceCollection } from "./source-store.ts";
import { toStoreError } from "./store-errors.ts";
import { makeTenantStore, tenantCollection } from "./tenant-store.ts";
import { makeToolNameStore, toolNameCollection } from "./tool-name-store.ts";
import { makeUsageStore, usageCollection, usageDetailCollection } from "./usage-store.ts";
import { makeUseStore, useCollection } from "./use-store.ts";
import { checkSearchIndexes, ensureSearchIndexes } from "./vector-search.ts";
import { makeVectorStoreBatchStore, vectorStoreBatchCollection } from "./vector-store-batch-store.ts";
import { makeWebhookSecretStore, webhookSecretCollection } from "./webhook-secret-store.ts";
import { makeWidgetKeyStore, widgetKeyCollection } from "./widget-key-store.ts";
import { makeWorkflowRunStore, workflowRunCollection, workflowStepCollection } from "./workflow-run-store.ts";
import { makeWorkflowStore, workflowCollection } from "./workflow-store.ts";

/** Every repository of the product, and what concerns the connection as a whole. */
export type Store = Awaited<ReturnType<typeof openStore>>;

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
  collectionCollection,
  completionsCollection,
  customProviderCollection,
  documentCollection,
  embeddingBatchCollection,
  executionCollection,
  idempotencyCollection,
  jobCollection,
  operatorSessionCollection,
  organizationCollection,
  dataKeyCollection,
  definitionVersionCollection,
  providerKeyCollection,
  reindexCollection,
  conversationCollection,
  responseCollection,
  responseEventCollection,
  sessionCollection,
  sourceCollection,
  searchToolCollection,
  tenantCollection,
  toolNameCollection,
  usageCollection,
  usageDetailCollection,
  useCollection,
  vectorStoreBatchCollection,
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
export async function openStore(options: { url: string; db: string; timeoutMs: number; logger: Logger }) {
  const { db, ping, close } = await connectStore(options);
  try {
    await migrateData(db, { migrations, logger: options.logger });
    await createIndexes(db);
    const capabilities = await ensureSearchIndexes(db, { logger: options.logger });
    const use = makeUseStore(db);
    return {
      capabilities,
      jobs: makeJobStore(db),
      documents: makeDocumentStore(db),
      collections: makeCollectionStore(db),
      agents: makeAgentStore(db),
      agentRuns: makeAgentRunStore(db),
      audit: makeAuditStore(db),
      definitionVersions: makeDefinitionVersionStore(db),
      workflows: makeWorkflowStore(db),
      workflowRuns: makeWorkflowRunStore(db),
      approvals: makeApprovalStore(db),
      webhookSecrets: makeWebhookSecretStore(db),
      callbacks: makeCallbackStore(db),
      executions: makeExecutionStore(db),
      chunks: makeChunkStore(db, capabilities),
      sources: makeSourceStore(db),
      reindexes: makeReindexStore(db),
      responses: makeResponseStore(db, use),
      conversations: makeConversationStore(db, use),
      responseEvents: makeResponseEventStore(db),
      apiKeys: makeApiKeyStore(db),
      sessions: makeSessionStore(db),
      operatorSessions: makeOperatorSessionStore(db),
      providerKeys: makeProviderKeyStore(db),
      customProviders: makeCustomProviderStore(db),
      widgetKeys: makeWidgetKeyStore(db),
      searchTools: makeSearchToolStore(db),
      tenants: makeTenantStore(db),
      toolNames: makeToolNameStore(db),
      organizations: makeOrganizationStore(db),
      idempotency: makeIdempotencyStore(db),
      completions: makeCompletionStore(db, use),
      retention: makeRetentionStore(db),
      usage: makeUsageStore(db),
      use,
      budgets: makeBudgetStore(db),
      batches: makeBatchStore(db),
      embeddingBatches: makeEmbeddingBatchStore(db),
      files: makeFileStore(db),
      vectorStoreBatches: makeVectorStoreBatchStore(db),
      ping,
      /** The version of the stored data. */
      dataVersion: () => dataVersionOf(db),
      /** Writes a document and removes it. @throws AppError `unavailable`, `storage_full`, `store_read_only`. */
      checkWrites: () => checkWrites(db),
      /** Resolves when the search indexes, where the server has any, can be queried. Throws `unavailable` when not. */
      async checkSearch(): Promise<void> {
        if (capabilities.vectorSearch) await checkSearchIndexes(db);
      },
      async close(): Promise<void> {
        await use.settled();
        await close();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function checkWrites(db: Db): Promise<void> {
  const probes = db.collection<{ _id: string }>("probes");
  const _id = newId("request");
  try {
    await probes.insertOne({ _id });
    await probes.deleteOne({ _id });
  } catch (error) {
    throw toStoreError(error) ?? error;
  }
}

/** Creates every declared collection and index that does not exist yet. Safe to run in many processes at once. */
async function createIndexes(db: Db): Promise<void> {
  for (const { name, indexes } of declarations) {
    if (indexes.length > 0) await db.collection(name).createIndexes([...indexes]);
  }
}
