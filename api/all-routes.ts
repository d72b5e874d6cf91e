import { toolServer } from "./mcp/tool-server.ts";
import type { AnyRoute } from "./route.ts";
import { agentRoutes } from "./routes/agents.ts";
import { answerRoutes } from "./routes/answers.ts";
import { anthropicBatchRoutes } from "./routes/anthropic/batches.ts";
import { anthropicMessageRoutes } from "./routes/anthropic/messages.ts";
import { callLogRoutes } from "./routes/call-logs.ts";
import { chatRoutes } from "./routes/chat.ts";
import { collectionRoutes } from "./routes/collections.ts";
import { compositeRoutes } from "./routes/composite.ts";
import { customProviderRoutes } from "./routes/custom-providers.ts";
import { definitionVersionRoutes } from "./routes/definition-versions.ts";
import { embeddingRoutes, openAiEmbeddingRoutes } from "./routes/embeddings.ts";
import { eventRoutes } from "./routes/events.ts";
import { guardRoutes } from "./routes/guards.ts";
import { healthRoutes } from "./routes/health.ts";
import { jobRoutes } from "./routes/jobs.ts";
import { keyRoutes } from "./routes/keys.ts";
import { modelRoutes } from "./routes/models.ts";
import { openAiBatchRoutes } from "./routes/openai/batches.ts";
import { openAiChatRoutes } from "./routes/openai/chat-completions.ts";
import { conversationRoutes } from "./routes/openai/conversations.ts";
import { openAiFileRoutes } from "./routes/openai/files.ts";
import { openAiModelRoutes } from "./routes/openai/models.ts";
import { responseContextRoutes } from "./routes/openai/response-context.ts";
import { openAiResponseRoutes } from "./routes/openai/responses.ts";
import { storedResponseRoutes } from "./routes/openai/stored-responses.ts";
import { vectorStoreFileRoutes } from "./routes/openai/vector-store-files.ts";
import { vectorStoreRoutes } from "./routes/openai/vector-stores.ts";
import { operatorRoutes } from "./routes/operator.ts";
import { operatorWriteRoutes } from "./routes/operator-writes.ts";
import { pageRoutes } from "./routes/pages.ts";
import { providerRoutes } from "./routes/providers.ts";
import { ragRoutes } from "./routes/rag.ts";
import { resourceMetadataRoutes } from "./routes/resource-metadata.ts";
import { scheduleRoutes } from "./routes/schedules.ts";
import { searchToolRoutes } from "./routes/search-tools.ts";
import { sessionRoutes } from "./routes/session.ts";
import { settingsRoutes } from "./routes/settings.ts";
import { usageRoutes } from "./routes/usage.ts";
import { usageSeriesRoutes } from "./routes/usage-series.ts";
import { webhookRoutes } from "./routes/webhooks.ts";
import { widgetKeyRoutes } from "./routes/widget-keys.ts";
import { workflowRoutes } from "./routes/workflows.ts";

/** Every route of the product, in the order of the documentation. */
export const allRoutes: readonly AnyRoute[] = [
  ...chatRoutes,
  ...modelRoutes,
  ...embeddingRoutes,
  ...customProviderRoutes,
  ...providerRoutes,
  ...widgetKeyRoutes,
  ...usageRoutes,
  ...usageSeriesRoutes,
  ...callLogRoutes,
  ...settingsRoutes,
  ...guardRoutes,
  ...ragRoutes,
  ...answerRoutes,
  ...searchToolRoutes,
  ...collectionRoutes,
  ...vectorStoreRoutes,
  ...vectorStoreFileRoutes,
  ...agentRoutes,
  ...workflowRoutes,
  ...definitionVersionRoutes,
  ...scheduleRoutes,
  ...eventRoutes,
  ...webhookRoutes,
  ...compositeRoutes,
  toolServer,
  ...resourceMetadataRoutes,
  ...jobRoutes,
  ...keyRoutes,
  ...sessionRoutes,
  ...openAiChatRoutes,
  ...openAiResponseRoutes,
  ...responseContextRoutes,
  ...storedResponseRoutes,
  ...conversationRoutes,
  ...openAiEmbeddingRoutes,
  ...openAiModelRoutes,
  ...openAiFileRoutes,
  ...openAiBatchRoutes,
  ...anthropicMessageRoutes,
  ...anthropicBatchRoutes,
  ...pageRoutes,
  ...operatorRoutes,
  ...operatorWriteRoutes,
  ...healthRoutes,
];
