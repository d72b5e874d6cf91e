import { newId } from "../../src/lib/ids.ts";
import type { CompletionRecord } from "../../src/store/completion-store.ts";

/** The record of a call that a model answered, as the ledger writes it. */
export const makeCompletion = (changes: Partial<CompletionRecord> = {}): CompletionRecord => ({
  _id: newId("log"),
  tenantId: "t1",
  keyId: "k1",
  surface: "api",
  kind: "chat",
  requestedModel: "m",
  model: "m",
  provider: "edge",
  isStreamed: false,
  outcome: "completed",
  inputTokens: 10,
  outputTokens: 5,
  usageSource: "provider",
  costNanoUsd: 7,
  isCached: false,
  attempts: 1,
  durationMs: 1,
  createdAt: new Date(),
  ...changes,
});
