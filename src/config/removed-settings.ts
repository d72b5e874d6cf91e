/** Settings of earlier releases, each with the answer to its question now. */
const removed = {
  MAX_RUN_BYTES: "runs have MAX_STORED_BYTES, apart from what is uploaded",
  MAX_CALL_LOG_BYTES: "call logs have half of MAX_STORED_BYTES, apart from what is uploaded",
  IDEMPOTENCY_BYTES_PER_TENANT: "responses for repeats have a twentieth of MAX_STORED_BYTES",
  MAX_AGENTS: "MAX_DEFINITIONS limits agents, and as many workflows",
  MAX_WORKFLOWS: "MAX_DEFINITIONS limits agents, and as many workflows",
  MAX_VECTOR_STORE_BATCHES: "MAX_COLLECTIONS limits them",
  MAX_WIDGET_KEYS: "MAX_KEYS limits API keys, and as many widget keys",
  MAX_CUSTOM_PROVIDERS: "a tenant has 20",
  MAX_CONTENT_BYTES: "it is 5 times MAX_JSON_BYTES",
  WIDGET_RATE_SHARE: "the widget keys of a tenant take half of its limits at most",
  BATCH_SETTLE_MS: "it is 5 times JOB_LEASE_MS",
  PROVIDER_CONNECT_TIMEOUT_MS: "it is 5 s",
  FETCH_TIMEOUT_MS: "it is 30 s",
} as const;

/** A sentence for each setting of earlier releases that is still set, and does nothing any more. */
export function warnOfRemoved(env: Record<string, string | undefined>): string[] {
  return Object.entries(removed).flatMap(([name, answer]) =>
    env[name] ? [`${name} is no setting now: ${answer}`] : [],
  );
}
