import { type Agents, makeAgents } from "./agents/agents.ts";
import { makeCredentials } from "./agents/credentials.ts";
import { makeApprovals } from "./approvals/approvals.ts";
import { makeAutomation } from "./automation/automation.ts";
import type { Batches } from "./batches/open-batches.ts";
import { type Composite, makeComposite } from "./composite/composite.ts";
import type { Config } from "./config/config.ts";
import { makeToolNames } from "./definitions/tool-names.ts";
import type { Gateway } from "./gateway/gateway.ts";
import type { Jobs } from "./jobs/jobs.ts";
import { makeKin } from "./jobs/kin.ts";
import { responsesQueue } from "./jobs/queues.ts";
import { cancelWork, unlessOver, type Work } from "./jobs/work.ts";
import type { Disposables } from "./lib/disposables.ts";
import { makeEgress } from "./net/egress.ts";
import type { Logger } from "./observe/logger.ts";
import { makeRag, type Rag } from "./rag/rag.ts";
import { makeSearchTools } from "./rag/search-tools.ts";
import { type Chat, makeChat } from "./run-models/run-models.ts";
import type { Store } from "./store/store.ts";
import { makeSearchingChat } from "./surfaces/responses/file-search/searching-chat.ts";
import { makeResponses } from "./surfaces/responses/stored/responses.ts";
import type { DataKeys } from "./tenancy/data-keys.ts";
import type { Quotas } from "./tenancy/quotas.ts";
import { makeVectorStores } from "./vector-stores/vector-stores.ts";
import { makeAnnouncements } from "./webhooks/announcements.ts";
import { makeCallbacks } from "./webhooks/callbacks.ts";
import { makePauses } from "./webhooks/outbox.ts";
import { makeSubscriptions } from "./webhooks/subscriptions.ts";
import { makeWebhooks } from "./webhooks/webhooks.ts";
import { makeWorkflows } from "./workflows/workflows.ts";

type AreasDeps = Omit<RunsDeps, "rag" | "composite" | "egress" | "webhooks"> &
  Omit<Parameters<typeof makeRag>[0], "config"> & { config: Config; batches: Batches; gateway: Gateway; store: Store };

/** The areas that stand on the gateway: documents, patterns, agents, workflows, answers, and what reports on them. */
export function openAreas(deps: AreasDeps, disposables: Disposables) {
  const { config, store, batches } = deps;
  const rag = makeRag(deps);
  disposables.add(() => rag.close());
  const composite = makeComposite(deps);
  const egress = makeEgress({ allowOrigins: config.fetch.allowOrigins, timeoutMs: config.fetch.timeoutMs });
  disposables.add(() => egress.close());
  const webhooks = makeWebhooks({ store: store.webhookSecrets, dataKeys: deps.dataKeys, egress });
  const toolNames = makeToolNames(deps);
  const cancelJob = (job: { tenantId: string; jobId: string }) => cancelWork(deps.jobs, works, job);
  const standing = { ...deps, rag, composite, egress, webhooks, toolNames };
  const runs = makeRuns({ ...standing, cancelJob: (job) => unlessOver(cancelJob(job)) });
  const answers = makeAnswers({ ...standing, ...runs });
  const areas = [rag, rag.reindexing, runs.agents, runs.workflows, composite, answers.responses, runs.automation];
  /** Every kind of durable work. */
  const works: Work[] = [...areas, batches.chats, batches.files].map(({ work }) => work);
  const reports = makeReports({ ...standing, works });
  const kin = makeKin({ store: store.jobs, wake: deps.waits.wake, cancel: cancelJob });
  deps.jobs.onEnd(kin.settle);
  return { ...answers, rag, composite, ...runs, works, kin, webhooks, ...reports };
}

type RunsDeps = Omit<
  Parameters<typeof makeAgents>[0] &
    Omit<Parameters<typeof makeWorkflows>[0], "agents"> &
    Parameters<typeof makeApprovals>[0] &
    Parameters<typeof makeAutomation>[0],
  "agents" | "workflows" | "toolNames" | "credentials" | "cancelJob"
> & { dataKeys: DataKeys };

/** Agents and workflows, the decisions that their runs wait for, and what starts them. */
function makeRuns(
  deps: RunsDeps &
    Pick<Parameters<typeof makeWorkflows>[0], "cancelJob"> & { toolNames: ReturnType<typeof makeToolNames> },
) {
  const ofSteps: Parameters<typeof makeWorkflows>[0]["agents"] = {
    find: (tenantId, by) => agents.find(tenantId, by),
    accept: (request) => agents.accept(request),
    spentOf: (tenantId, runId) => agents.spentOf(tenantId, runId),
  };
  const workflows = makeWorkflows({ ...deps, agents: ofSteps });
  const agents = makeAgents({ ...deps, workflows, credentials: makeCredentials(deps.dataKeys) });
  return {
    searchTools: makeSearchTools(deps),
    workflows,
    agents,
    approvals: makeApprovals({ ...deps, workflows, agents }),
    automation: makeAutomation({ ...deps, workflows, agents }),
  };
}

/** What tells servers of tenants what happened: of a job that they ask it for, and of all that they have webhooks for. */
function makeReports(
  deps: Omit<Parameters<typeof makeCallbacks>[0], "store" | "pauses"> &
    Omit<Parameters<typeof makeAnnouncements>[0], "pauses" | "budgetOf"> &
    Parameters<typeof makeSubscriptions>[0] & { store: Store; gateway: Gateway },
) {
  const pauses = makePauses();
  return {
    callbacks: makeCallbacks({ ...deps, pauses }),
    subscriptions: makeSubscriptions(deps),
    announcements: makeAnnouncements({ ...deps, budgetOf: deps.gateway.budget, pauses }),
  };
}

/** What answers chats, keeps responses and makes them in the background, and the stores that those search. */
function makeAnswers(
  deps: Omit<Parameters<typeof makeChat>[0], "works" | "waitMs" | "gateway"> & {
    gateway: Gateway;
    batches: Batches;
    rag: Rag;
    config: Config;
    store: Store;
    jobs: Jobs;
    agents: Agents;
    composite: Composite;
    quotas: Quotas;
    logger: Logger;
  },
) {
  const { config, agents, composite } = deps;
  const works = [agents.work, composite.work];
  const chatWithin = (waitMs: number) => makeChat({ ...deps, works, waitMs });
  const vectorStores = makeVectorStores(deps);
  const searching = (chat: Chat) => makeSearchingChat({ chat, vectorStores });
  const inBackground = searching(chatWithin(responsesQueue.timeoutMs));
  const responses = makeResponses({ ...deps, chat: inBackground, config: config.responses });
  const chat = chatWithin(config.jobs.runWaitMs);
  return { chat, responseChat: searching(chat), responses, vectorStores };
}
