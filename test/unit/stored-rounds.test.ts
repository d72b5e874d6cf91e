import { expect } from "chai";
import { ZodError } from "zod";
import type { Round } from "../../src/surfaces/responses/file-search/rounds.ts";
import { readRounds } from "../../src/surfaces/responses/file-search/stored-rounds.ts";

const results = [
  { file_id: "f", filename: "pump.txt", score: 0.5, text: "Oil.", attributes: {}, document_id: "d", chunk_id: "c" },
];
const round: Round = {
  said: [
    { type: "reasoning-delta", text: "Hm." },
    { type: "reasoning-item", provider: "openai", item: { encrypted: "x" } },
    { type: "text-delta", text: "Let me see." },
    { type: "citation", of: { file_id: "f", filename: "pump.txt", document_id: "d", chunk_id: "c" } },
    { type: "tool-call-delta", index: 0, name: "other", argumentsDelta: "{}" },
    { type: "search-call", id: "s", queries: ["pump"] },
    { type: "search-result", id: "s", results, hasFailed: false },
    { type: "step-call", id: "t", server: "agent", name: "tool", arguments: "{}" },
    { type: "step-result", id: "t", output: "Done.", isError: false },
  ],
  turn: [
    { type: "reasoning", provider: "openai", item: { encrypted: "x" } },
    { type: "text", text: "Let me see." },
    { type: "tool-call", id: "s", name: "file_search", arguments: '{"query":"pump"}' },
  ],
  searches: [
    { id: "s", query: "pump", results },
    { id: "u", query: "", results: [], problem: "it has no query." },
  ],
  usage: {
    inputTokens: 9,
    outputTokens: 8,
    cachedTokens: 1,
    cacheWriteTokens: 2,
    hourWriteTokens: 1,
    reasoningTokens: 3,
    isFlex: true,
  },
  costUsd: 0.001,
};

describe("the rounds of a response whose attempt was cut", () => {
  it("are read as they were kept, with what they cost", () => {
    expect(readRounds(JSON.stringify([round]))).to.deep.equal([round]);
  });

  it("are none if none were kept", () => {
    expect(readRounds(undefined)).to.deep.equal([]);
  });

  it("are refused if they do not say what they cost", () => {
    const { costUsd: _cost, ...free } = round;
    expect(() => readRounds(JSON.stringify([free]))).to.throw(ZodError);
  });
});
