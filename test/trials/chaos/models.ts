/** The models of the run, each of one kind of work alone, so that the ledger shows the cost of each kind. */
export const models = {
  agent: "gpt-5.4-mini",
  composite: "gpt-5.4",
  workflow: "gpt-5.6-sol",
  chat: "gpt-5.4-nano",
  batch: "claude-haiku-5-5",
} as const;

/** What the provider asks for a token that it reads, and one that it writes, in billionths of a USD, by its price list. */
export const prices: Readonly<Record<string, readonly [input: number, output: number]>> = {
  [models.agent]: [750, 4_500],
  [models.composite]: [2_500, 15_000],
  [models.workflow]: [4_000, 20_000],
  [models.chat]: [200, 1_250],
};
