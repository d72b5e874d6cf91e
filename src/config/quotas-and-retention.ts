import type { z } from "zod";
import { count, setting } from "./setting-forms.ts";

/** What one tenant may keep, and for how long. */
export const keptSettings = {
  MAX_DEFINITIONS: setting(
    count(1, 1_000_000).default(1_000),
    "Agents that one tenant may keep, and as many workflows",
  ),
  MAX_DOCUMENTS: setting(count(1, 100_000_000).default(100_000), "Documents that one tenant may keep"),
  MAX_COLLECTIONS: setting(
    count(1, 100_000).default(1_000),
    "Collections of documents that one tenant may keep, and as many batches of files for vector stores",
  ),
  MAX_FILES: setting(count(1, 1_000_000).default(1_000), "Files of `/v1/files` that one tenant may keep"),
  MAX_KEYS: setting(count(1, 1_000_000).default(1_000), "API keys that one tenant may have, and as many widget keys"),
  MAX_ORGANIZATIONS: setting(count(1, 1_000_000).default(20), "Organizations that one tenant may found"),
  MAX_STORED_BYTES: setting(
    count(1_024, 2 ** 50).default(20 * 2 ** 30),
    "Bytes of uploaded documents, files and stored responses that one tenant may keep; as many of its runs with their steps and audit logs, half of it of call logs, a twentieth of responses for repeats by `Idempotency-Key`",
  ),
  MAX_RUNS: setting(
    count(1, 1_000_000_000).default(1_000_000),
    "Runs of agents, workflows and composites that one tenant may keep",
  ),
  CALL_LOG_DAYS: setting(
    count(0, 36_500).default(400),
    "Days that the log record of a model call (`/ai/logs`) is kept; 0: for ever",
  ),
  WORKFLOW_RUN_DAYS: setting(
    count(0, 36_500).default(400),
    "Days that a run of a workflow is kept after it began, with its steps' results and approvals, if it has ended; 0: for ever",
  ),
  AGENT_RUN_DAYS: setting(
    count(0, 36_500).default(0),
    "Days that a run of an agent is kept after it began, with its audit log and approvals, if it has ended; 0: for ever",
  ),
  RESPONSE_DAYS: setting(count(1, 3_650).default(30), "Days that a stored response of `/v1/responses` is kept"),
  MAX_OPEN_JOBS: setting(count(1, 10_000_000).default(10_000), "Jobs of one tenant that have not ended"),
  MAX_OPEN_BATCHES: setting(
    count(1, 10_000).default(50),
    "Batches of files or messages of one tenant that have not ended; each has 50,000 requests at most",
  ),
} as const;

type Values = { [K in keyof typeof keptSettings]: z.output<(typeof keptSettings)[K]["schema"]> };

export function toQuotas(v: Values) {
  return {
    agents: v.MAX_DEFINITIONS,
    workflows: v.MAX_DEFINITIONS,
    documents: v.MAX_DOCUMENTS,
    collections: v.MAX_COLLECTIONS,
    vectorStoreBatches: v.MAX_COLLECTIONS,
    files: v.MAX_FILES,
    keys: v.MAX_KEYS,
    widgetKeys: v.MAX_KEYS,
    organizations: v.MAX_ORGANIZATIONS,
    storedBytes: v.MAX_STORED_BYTES,
    idempotencyBytes: Math.floor(v.MAX_STORED_BYTES / 20),
    customProviders: 20,
    feedback: 10_000,
    runs: v.MAX_RUNS,
    runBytes: v.MAX_STORED_BYTES,
    callLogBytes: Math.floor(v.MAX_STORED_BYTES / 2),
    openJobs: v.MAX_OPEN_JOBS,
    openBatches: v.MAX_OPEN_BATCHES,
  };
}

export function toRetention(v: Values) {
  return {
    callLogDays: v.CALL_LOG_DAYS,
    workflowRunDays: v.WORKFLOW_RUN_DAYS,
    agentRunDays: v.AGENT_RUN_DAYS,
  };
}
