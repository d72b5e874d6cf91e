import { setTimeout as delay } from "node:timers/promises";
import { type Db, MongoClientClosedError } from "mongodb";
import { newId } from "../lib/ids.ts";
import type { Logger } from "../observe/logger.ts";
import { agentRunCollection, makeAgentRunStore } from "./agent-run-store.ts";
import { agentCollection, makeAgentStore } from "./agent-store.ts";
import { answerCollection, makeAnswerStore } from "./answer-store.ts";
import { approvalCollection, makeApprovalStore } from "./approval-store.ts";
import { auditCollection, makeAuditStore } from "./audit-store.ts";
import { batchCollection, batchItemCollection, makeBatchStore } from "./batch-store.ts";
import { budgetCollection, makeBudgetStore } from "./budget-store.ts";
import { callbackCollection, makeCallbackStore } from "./callback-store.ts";
import { chunkCollection, makeChunkStore } from "./chunk-store.ts";
import type { IndexDeclaration, StoreCapabilities } from "./collection.ts";
import { collectionCollection, makeCollectionStore } from "./collection-store.ts";
import { completionsCollection, makeCompletionStore } from "./completion-store.ts";
import { connectForOpening, connectStore } from "./connect.ts";
import { conversationCollection, makeConversationStore } from "./conversation-store.ts";
import { customProviderCollection, makeCustomProviderStore } from "./custom-provider-store.ts";
import { dataVersionOf, migrateData } from "./data-version.ts";
import { definitionVersionCollection, makeDefinitionVersionStore } from "./definition-version-store.ts";
import { deliveryCollection, makeDeliveryStore } from "./delivery-store.ts";
import { documentCollection } from "./document-record.ts";
import { makeDocumentStore } from "./document-store.ts";
import { eventCollection, eventSourceCollection, makeEventSourceStore, makeEventStore } from "./event-store.ts";
import { executionCollection, makeExecutionStore } from "./execution-store.ts";
import { fileBatchCollection, fileCollection, makeFileStore } from "./file-store.ts";
import { firingCollection, makeFiringStore } from "./firing-store.ts";
import { idempotencyCollection, makeIdempotencyStore } from "./idempotency-store.ts";
import { jobCollection, makeJobStore } from "./job-store.ts";
import { apiKeyCollection, makeApiKeyStore } from "./key-store.ts";
import { migrations, oldestBeside } from "./migrations.ts";
import { makeOrganizationStore, organizationCollection } from "./organization-store.ts";
import { dataKeyCollection, makeProviderKeyStore, providerKeyCollection } from "./provider-key-store.ts";
import { makeReindexStore, reindexCollection } from "./reindex-store.ts";
import { makeResponseEventStore, responseEventCollection } from "./response-event-store.ts";
import { makeResponseStore, responseCollection } from "./response-store.ts";
import { makeRetentionStore } from "./retention-store.ts";
import { makeRunBudgetStore, runBudgetCollection } from "./run-budget-store.ts";
import { makeScheduleStore, scheduleCollection } from "./schedule-store.ts";
import { makeSearchToolStore, searchToolCollection } from "./search-tool-store.ts";
import {
  makeOperatorSessionStore,
  makeSessionStore,
  operatorSessionCollection,
  sessionCollection,
} from "./session-store.ts";
import { makeSourceStore, sourceCollection } from "./source-store.ts";
import { toStoreError } from "./store-errors.ts";
import { makeTenantStore, tenantCollection } from "./tenant-store.ts";
import { makeToolNameStore, toolNameCollection } from "./tool-name-store.ts";
import { makeTriggerStore, triggerCollection } from "./trigger-store.ts";
import { makeUsageSeries } from "./usage-series.ts";
import { makeUsageStore, usageCollection, usageDetailCollection } from "./usage-store.ts";
import { makeUseStore, type UseStore, useCollection } from "./use-store.ts";
import { checkSearchIndexes, ensureSearchIndexes } from "./vector-search.ts";
import { makeVectorStoreBatchStore, vectorStoreBatchCollection } from "./vector-store-batch-store.ts";
import { makeWaitStore, waitCollection } from "./wait-store.ts";
import {
  makeWebhookSecretStore,
  makeWebhookStore,
  webhookCollection,
  webhookSecretCollection,
} from "./webhook-store.ts";
import { makeWidgetKeyStore, widgetKeyCollection } from "./widget-key-store.ts";
import { makeWorkflowRunStore, workflowRunCollection } from "./workflow-run-store.ts";
import { openStepCollection, workflowItemCollection, workflowStepCollection } from "./workflow-step-store.ts";
import { makeWorkflowStore, workflowCollection } from "./workflow-store.ts";

/** Every repository of the product, and what concerns the connection as a whole. */
export type Store = Awaited<ReturnType<typeof openStore>>;

const declarations = [
  agentCollection,
  agentRunCollection,
  answerCollection,
  auditCollection,
  apiKeyCollection,
  batchCollection,
  batchItemCollection,
  fileBatchCollection,
  fileCollection,
  budgetCollection,
  runBudgetCollection,
  callbackCollection,
  chunkCollection,
  collectionCollection,
  completionsCollection,
  customProviderCollection,
  documentCollection,
  eventCollection,
  eventSourceCollection,
  executionCollection,
  firingCollection,
  idempotencyCollection,
  jobCollection,
  operatorSessionCollection,
  organizationCollection,
  dataKeyCollection,
  definitionVersionCollection,
  providerKeyCollection,
  reindexCollection,
  scheduleCollection,
  conversationCollection,
  responseCollection,
  responseEventCollection,
  sessionCollection,
  sourceCollection,
  searchToolCollection,
  tenantCollection,
  toolNameCollection,
  triggerCollection,
  usageCollection,
  usageDetailCollection,
  useCollection,
  vectorStoreBatchCollection,
  webhookSecretCollection,
  webhookCollection,
  deliveryCollection,
  widgetKeyCollection,
  workflowCollection,
  workflowRunCollection,
  workflowStepCollection,
  workflowItemCollection,
  openStepCollection,
  approvalCollection,
  waitCollection,
];

/** The names of all collections. */
export const collectionNames: readonly string[] = declarations.map(({ name }) => name);

/** Steps of the start that take longer than this are logged, in ms. */
const SLOW_MS = 5_000;

/**
 * Connects to MongoDB, creates what is declared and missing (collections, indexes, search indexes) and finds out what the
 * server can do. It waits for the indexes that keep records unique. Others that take long are built while the product works.
 * @throws AppError `unavailable` when the server does not answer within `timeoutMs`; ConfigError when its data are newer.
 */
export async function openStore(options: { url: string; db: string; timeoutMs: number; logger: Logger }) {
  const { db, ping, close } = await connectStore(options);
  const opening = connectForOpening(options);
  let building = Promise.resolve();
  try {
    const { logger } = options;
    const wait = <T>(what: string, work: Promise<T>) => sayIfSlow(logger, `waiting for ${what}`, work);
    await wait(
      "the change of the stored data to this release",
      migrateData(opening.db, { migrations, oldestBeside, logger }),
    );
    await wait("indexes that keep records unique", createIndexes(opening.db, isUnique));
    await wait("the indexes of chunks", createIndexesOf(opening.db, chunkCollection)); // search indexes need the collection
    const others = createIndexes(opening.db, (index) => !isUnique(index));
    building = finishLater(logger, others);
    await Promise.race([others, delay(SLOW_MS, undefined, { ref: false })]);
    const capabilities = await ensureSearchIndexes(opening.db, { logger });
    const use = makeUseStore(db);
    return {
      capabilities,
      ...makeStores(db, capabilities, use),
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
        await Promise.all([opening.close(), close()]);
        await building;
      },
    };
  } catch (error) {
    await Promise.all([opening.close(), close()]);
    throw error;
  }
}

/** The stores of each kind of record. */
function makeStores(db: Db, capabilities: StoreCapabilities, use: UseStore) {
  return {
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
    waits: makeWaitStore(db),
    schedules: makeScheduleStore(db),
    firings: makeFiringStore(db),
    triggers: makeTriggerStore(db),
    events: makeEventStore(db),
    eventSources: makeEventSourceStore(db),
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
    answers: makeAnswerStore(db),
    completions: makeCompletionStore(db, use),
    retention: makeRetentionStore(db),
    usage: makeUsageStore(db),
    usageSeries: makeUsageSeries(db),
    use,
    budgets: makeBudgetStore(db),
    runBudgets: makeRunBudgetStore(db),
    batches: makeBatchStore(db),
    files: makeFileStore(db),
    deliveries: makeDeliveryStore(db),
    webhooks: makeWebhookStore(db),
    vectorStoreBatches: makeVectorStoreBatchStore(db),
  };
}

/** Logs once that a step takes long. */
async function sayIfSlow<T>(logger: Logger, what: string, work: Promise<T>): Promise<T> {
  const timer = setTimeout(() => logger.warn(what), SLOW_MS);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
  }
}

/** Logs the outcome of indexes that are built while the product works. */
async function finishLater(logger: Logger, building: Promise<void>): Promise<void> {
  try {
    await sayIfSlow(logger, "indexes are being built: until they are, some lists and sweeps are slow", building);
  } catch (error) {
    if (error instanceof MongoClientClosedError) return; // the process ends; the server goes on with it
    logger.error({ err: error }, "an index was not built: some lists and sweeps are slow until the next start");
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

const isUnique = ({ unique }: IndexDeclaration) => unique === true;

/** Creates those of the declared indexes that do not exist yet, and their collections. Safe to run in many processes at once. */
async function createIndexes(db: Db, isWanted: (index: IndexDeclaration) => boolean): Promise<void> {
  for (const { name, indexes } of declarations) {
    const wanted = indexes.filter(isWanted);
    await createIndexesOf(db, { name, indexes: wanted });
  }
}

async function createIndexesOf(db: Db, { name, indexes }: { name: string; indexes: readonly IndexDeclaration[] }) {
  if (indexes.length > 0) await db.collection(name).createIndexes([...indexes]);
}
