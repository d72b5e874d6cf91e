import { setTimeout as delay } from "node:timers/promises";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { type StructuredTool, tool } from "@langchain/core/tools";
import { expect } from "chai";
import { z } from "zod";
import { type GatewayAnswer, GatewayModel } from "../../src/agents/gateway-model.ts";
import { observeCall } from "../../src/agents/observe-call.ts";
import { makeRunUsage } from "../../src/agents/run-usage.ts";
import { makeLogger } from "../../src/observe/logger.ts";

describe("a tool call of an agent", () => {
  const slow = tool(() => new Promise<string>(() => undefined), {
    name: "slow",
    description: "Never answers, and takes no signal.",
    schema: z.object({}),
    extras: { timeoutMs: 50 },
  });
  const patient = tool(() => delay(20, "ready"), {
    name: "patient",
    description: "May take longer than a timer can.",
    schema: z.object({}),
    extras: { timeoutMs: 30 * 86_400_000 },
  });
  const call = { id: "call_1_1", name: "slow", arguments: "{}", idempotencyKey: "run_1-1-1", index: 1 };
  const observe = (signal: AbortSignal, asked: StructuredTool = slow) => {
    const run = { _id: "run_1", tenantId: "acme", limits: { timeoutMs: 1_000 } };
    const none = { open: async () => undefined, close: async () => undefined };
    const usage = makeRunUsage(run, { findModel: async () => undefined, runBudgets: none });
    const logger = makeLogger({ level: "silent", name: "test" });
    const deps = {
      run: {},
      tools: [asked],
      calls: new Map(),
      usage,
      signal,
      logger,
      guardOutput: async (output: string) => output,
    };
    return observeCall(deps, { ...call, name: asked.name }, () => asked.invoke({}, { signal }));
  };

  it("ends at the time limit of its tool, and the model reads so", async () => {
    const { isError, output } = await observe(new AbortController().signal);
    expect([isError, output]).to.deep.equal([true, "The tool failed: It did not answer within 0.05 s."]);
  });

  it("may have 30 days", async () => {
    const { isError, output } = await observe(new AbortController().signal, patient);
    expect([isError, output]).to.deep.equal([false, "ready"]);
  });

  it("ends with the run, for the run's reason", async () => {
    const run = new AbortController();
    const reason = new Error("the run is over");
    setImmediate(() => run.abort(reason));
    const thrown = await observe(run.signal).catch((error: unknown) => error);
    expect(thrown).to.equal(reason);
  });
});

describe("the gateway as a chat model of LangChain", () => {
  const outcome: GatewayAnswer["outcome"] = {
    text: "I look.",
    toolCalls: [{ id: "call_7", name: "look_up", arguments: '{"key": "ma' }],
    finishReason: "tool_calls",
    model: "gpt-5.4-mini",
    provider: "openai",
    usage: { inputTokens: 10, outputTokens: 5, cachedTokens: 4 },
    logId: "log_1",
    costUsd: 0.002,
    cached: false,
    routing: { requested: "gpt-5.4-mini", model: "gpt-5.4-mini", provider: "openai", reason: "requested" },
    timingsMs: { total: 2, provider: 1 },
  };
  const spent = { tokens: 15, costUsd: 0.002 };

  it("returns usage, cost, log and finish reason where LangChain's callbacks read them", async () => {
    const asked: unknown[] = [];
    const model = new GatewayModel(async (messages, tools) => {
      asked.push(messages, tools);
      return { outcome, spent };
    });
    const lookUp = tool(() => "", { name: "look_up", description: "Looks up.", schema: z.object({ key: z.string() }) });
    const message = await model.bindTools([lookUp]).invoke([new HumanMessage("Where?")]);
    if (!AIMessage.isInstance(message)) throw new Error("no message of the assistant");
    expect(message.usage_metadata).to.deep.include({ input_tokens: 10, output_tokens: 5, total_tokens: 15 });
    expect(message.response_metadata).to.include({ logId: "log_1", costUsd: 0.002, finish_reason: "tool_calls" });
    expect(message.tool_calls?.[0]).to.deep.include({ name: "look_up", args: {} });
    const parameters = { type: "object", properties: { key: { type: "string" } }, required: ["key"] };
    expect(asked).to.deep.equal([
      [{ role: "user", content: "Where?" }],
      [{ name: "look_up", description: "Looks up.", parameters }],
    ]);
  });
});
