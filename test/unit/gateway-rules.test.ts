import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import { type Catalogue, makeCatalogue, requireModel, toModelEntry } from "../../src/gateway/catalogue.ts";
import { toCompletionRequest } from "../../src/gateway/chat/attempt.ts";
import { parseSvcOptions, toChatRequest } from "../../src/gateway/chat/request.ts";
import { classifyTask, type IsUsable, routeAuto, routeNamed } from "../../src/gateway/chat/route-model.ts";
import { modelEntrySchema } from "../../src/gateway/model-schemas.ts";
import { toNanoUsd } from "../../src/gateway/money/prices.ts";
import { makeBreaker } from "../../src/gateway/resilience/breaker.ts";
import { isWorthRetry, retryDelayMs, withRetries } from "../../src/gateway/resilience/retry.ts";
import { chatBodySchema } from "../../src/gateway/schemas.ts";
import { estimateTokens } from "../../src/gateway/tokens.ts";
import { AppError } from "../../src/lib/errors.ts";

import { cpuTimeOf } from "../support/cpu-time.ts";

const edge = { baseUrl: undefined, apiKey: undefined, model: "default", embeddingModel: undefined };
const catalogue = makeCatalogue(edge);
const ask = (content: string, extra: object = {}) => ({
  model: "auto",
  messages: [{ role: "user" as const, content }],
  ...extra,
});
const errorOf = (work: () => unknown): AppError => {
  try {
    work();
  } catch (error) {
    if (error instanceof AppError) return error;
  }
  throw new Error("expected an AppError");
};

const findModel = (all: Catalogue, id: string, kind: "chat" | "embedding") => requireModel(all.find(id), id, kind);

describe("model catalogue", () => {
  it("holds only entries that the interface's shape allows, each with a traceable price", () => {
    for (const model of catalogue.all) {
      const entry = modelEntrySchema.parse(toModelEntry(model));
      expect(entry.priceSource, entry.id).not.to.equal("");
      expect(Date.parse(entry.priceDate ?? ""), entry.id).to.be.greaterThan(0);
    }
    expect(new Set(catalogue.all.map((model) => model.id)).size).to.equal(catalogue.all.length);
  });

  it("prices a call to the billionth of a dollar, and long prompts by their own price", () => {
    const haiku = findModel(catalogue, "claude-haiku-5-5", "chat");
    expect(toNanoUsd(haiku, { inputTokens: 1_000, outputTokens: 10 })).to.equal(1_000 * 100 + 10 * 500);
    expect(toNanoUsd(haiku, { inputTokens: 100_001, outputTokens: 10 })).to.equal(100_001 * 500 + 10 * 2_500);
    expect(toModelEntry(findModel(catalogue, "text-embedding-3-large", "embedding")).inputCostPer1k).to.equal(0.00013);
  });

  it("prices cached and cache-writing tokens apart", () => {
    const haiku = findModel(catalogue, "claude-haiku-5-5", "chat");
    const usage = { inputTokens: 1_000, outputTokens: 10, cachedTokens: 600, cacheWriteTokens: 300 };
    expect(toNanoUsd(haiku, usage)).to.equal(100 * 100 + 600 * 10 + 300 * 125 + 10 * 500);
    const plain = findModel(catalogue, "gpt-5.2", "chat");
    expect(toNanoUsd(plain, { inputTokens: 10, outputTokens: 0, cachedTokens: 10 })).to.equal(10 * 1_750);
  });

  it("finds a model by its provider's aliases", () => {
    expect(findModel(catalogue, "claude-haiku-4-5", "chat").id).to.equal("claude-haiku-4-5-20251001");
    expect(findModel(catalogue, "gpt-5.6", "chat").id).to.equal("gpt-5.6-sol");
    const names = catalogue.all.flatMap((model) => [model.id, ...(model.aliases ?? [])]);
    expect(new Set(names).size).to.equal(names.length);
  });

  it("knows the default alias, and names the edge server's models by the settings", () => {
    expect(catalogue.find("meta-llm")?.id).to.equal("switchyard-offline");
    const served = makeCatalogue({
      ...edge,
      baseUrl: "http://localhost:1/v1",
      model: "llama3",
      embeddingModel: "nomic",
    });
    expect([served.find("meta-llm")?.id, served.defaultEmbedding.id]).to.deep.equal(["llama3", "nomic"]);
    expect(errorOf(() => findModel(catalogue, "nope", "chat")).code).to.equal("unknown_model");
    expect(errorOf(() => findModel(catalogue, "text-embedding-3-small", "chat")).code).to.equal("unknown_model");
  });
});

const routeModel = (request: ReturnType<typeof ask>, isUsable: IsUsable) =>
  request.model === "auto"
    ? routeAuto(catalogue, request, isUsable)
    : routeNamed(findModel(catalogue, request.model, "chat"), [], request, isUsable);

describe("routing", () => {
  const all = () => true;
  it("classifies tasks", () => {
    const typeOf = (content: string) => classifyTask(ask(content)).type;
    expect(typeOf("```js\nlet a = 1\n```\nwhat is wrong?")).to.equal("coding");
    expect(typeOf("Write a python script that renames files")).to.equal("coding");
    expect(typeOf("Prove that the square root of 2 is irrational.")).to.equal("reasoning");
    expect(typeOf("word ".repeat(40_000))).to.equal("reasoning");
    expect(typeOf("Hello, how are you? My class starts at nine.")).to.equal("chat");
  });

  it("takes the cheapest usable model of the type whose context fits", () => {
    const onlyAnthropic = ({ provider }: { provider: string }) => provider === "anthropic";
    expect(routeModel(ask("Refactor this code"), onlyAnthropic).model.id).to.equal("claude-sonnet-5-5");
    expect(routeModel(ask("Prove it step by step"), onlyAnthropic).model.id).to.equal("claude-opus-5-5");
    expect(routeModel(ask("Refactor this code"), all).model.id).to.equal("gpt-5.4-mini");
    const long = `${"word ".repeat(450_000)} refactor this code`;
    const routed = routeModel(ask(long), all).model;
    expect(routed.type).to.equal("coding");
    expect(routed.contextWindow).to.be.greaterThan(450_000);
  });

  it("falls back to a usable model, and says why", () => {
    const { model, reason } = routeModel(ask("Refactor this code"), ({ provider }) => provider === "edge");
    expect(model.id).to.equal("switchyard-offline");
    expect(reason).to.contain("no usable coding model");
    const error = errorOf(() =>
      routeModel({ ...ask("hi"), model: "gpt-5.4-mini" }, ({ provider }) => provider === "edge"),
    );
    expect([error.code, error.param]).to.deep.equal(["provider_not_configured", "model"]);
  });

  it("chooses the offline model only when there is no other", () => {
    expect(routeModel(ask("Hello"), all).model.isStub).to.equal(undefined);
    expect(routeModel(ask("Hello"), ({ provider }) => provider === "edge").model.isStub).to.equal(true);
  });

  it("names fallbacks of the same type, another provider's first", () => {
    const { model, fallbacks } = routeModel(ask("Prove it step by step"), all);
    expect(fallbacks.every((one) => one.type === "reasoning" && one.id !== model.id)).to.equal(true);
    expect(fallbacks[0]?.provider).not.to.equal(model.provider);
    expect(fallbacks.length).to.be.within(1, 3);
    expect(routeModel({ ...ask("hi"), model: "gpt-5.4-nano" }, all).fallbacks).to.deep.equal([]);
  });

  it("refuses parameters that a named model does not take, and routes around it", () => {
    const options = { strict: true };
    const named = (model: string, extra: object) =>
      errorOf(() => routeModel(ask("hi", { model, options, ...extra }), all));
    const tools = [{ name: "find" }];
    expect(named("claude-opus-5-5", { temperature: 0.2 })).to.include({
      code: "invalid_request",
      param: "temperature",
    });
    expect(named("claude-haiku-4-5", { temperature: 1.5 })).to.include({
      code: "invalid_request",
      param: "temperature",
    });
    expect(named("gpt-6.1-sol", { temperature: 0 })).to.include({ code: "invalid_request", param: "temperature" });
    expect(named("claude-sonnet-5-5", { topP: 0.5 })).to.include({ code: "invalid_request", param: "top_p" });
    const warm = { temperature: 0.2, effort: "low" };
    expect(named("gpt-5.4", warm)).to.include({ code: "invalid_request", param: "temperature" });
    const takes = (model: string, extra: object) => routeModel({ ...ask("hi"), model, ...extra }, all).model.id;
    expect(takes("claude-opus-5-5", { temperature: 1, tools })).to.equal("claude-opus-5-5");
    expect(takes("claude-sonnet-4-6", { temperature: 0 })).to.equal("claude-sonnet-4-6");
    expect(takes("gpt-6-astra", { tools })).to.equal("gpt-6-astra");
    expect(takes("claude-opus-5-5", { temperature: 0.2 }), "adjusted").to.equal("claude-opus-5-5");
    for (const type of ["Hello", "Refactor this code", "Prove it step by step"]) {
      const routed = routeModel(ask(type, { temperature: 0.2, tools }), all);
      for (const model of [routed.model, ...routed.fallbacks]) {
        expect(model.maxTemperature, model.id).to.be.greaterThan(0.2);
        expect(model.features).to.include("tool_use");
      }
    }
  });

  it("sends a reasoning model the parameters that it needs", () => {
    const wire = (id: string, extra: object) =>
      toCompletionRequest({ ...ask("hi"), ...extra }, findModel(catalogue, id, "chat"));
    const tools = [{ name: "find" }];
    expect(wire("gpt-6-luna", { tools }), "tools leave the reasoning on").not.to.have.property("effort");
    expect(wire("gpt-5.4", { tools, temperature: 0 })).to.include({ temperature: 0, effort: "none" });
    expect(wire("gpt-5.4", { temperature: 0, effort: "low" }))
      .to.include({ effort: "low" })
      .and.not.have.property("temperature");
    expect(wire("gpt-6-luna", { temperature: 1 })).not.to.have.any.keys("temperature", "effort");
    expect(wire("gpt-5.4", { temperature: 0 })).to.include({ temperature: 0, effort: "none" });
    expect(wire("gpt-4.1", { temperature: 0, tools })).not.to.have.property("effort");
    expect(wire("claude-opus-5-5", { temperature: 1, topP: 1 })).not.to.have.any.keys("temperature", "topP");
    expect(wire("claude-opus-5-5", { preferredTemperature: 0.3 })).not.to.have.any.keys("temperature");
    expect(wire("claude-haiku-4-5", { preferredTemperature: 0.3 })).to.include({ temperature: 0.3 });
    expect(wire("claude-haiku-4-5", { preferredTemperature: 1.5 })).not.to.have.any.keys("temperature");
    expect(wire("claude-haiku-4-5", { temperature: 1.5 }), "clamped").to.include({ temperature: 1 });
    expect(wire("gpt-4.1", { preferredTemperature: 0.3, temperature: 1 })).to.include({ temperature: 1 });
    expect(wire("gpt-5.4", { topP: 0.5 })).to.include({ topP: 0.5, effort: "none" });
  });

  it("routes a preferred temperature also to models that take none", () => {
    const preferred = { ...ask("hi"), model: "claude-opus-5-5", preferredTemperature: 0.3 };
    expect(routeModel(preferred, all).model.id).to.equal("claude-opus-5-5");
  });

  it("is not slowed down by hostile prompts", () => {
    for (const piece of ["class ", "1 * ", "function(", "`", "a1"]) {
      expect(
        cpuTimeOf(() => classifyTask(ask(piece.repeat(60_000)))),
        piece,
      ).to.be.below(1_000);
    }
  });
});

describe("chat request", () => {
  const parse = (body: object) =>
    toChatRequest(chatBodySchema.parse({ messages: [{ role: "user", content: "hi" }], ...body }));
  it("takes either name of the token limit, and refuses two that differ", () => {
    expect([parse({ maxTokens: 5 }).maxTokens, parse({ max_tokens: 6 }).maxTokens]).to.deep.equal([5, 6]);
    expect(parse({ maxTokens: 5, max_tokens: 5 }).maxTokens).to.equal(5);
    expect(errorOf(() => parse({ maxTokens: 5, max_tokens: 6 })).param).to.equal("max_tokens");
  });

  it("maps tool calls and results in both spellings", () => {
    const call = { id: "c1", type: "function", function: { name: "find", arguments: "{}" } };
    const messages = [
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "assistant", toolCalls: [call] },
      { role: "tool", content: "found", tool_call_id: "c1" },
    ];
    const toolCalls = [{ id: "c1", name: "find", arguments: "{}" }];
    expect(parse({ messages }).messages).to.deep.equal([
      { role: "assistant", content: "", toolCalls },
      { role: "assistant", content: "", toolCalls },
      { role: "tool", content: "found", toolCallId: "c1" },
    ]);
    expect(errorOf(() => parse({ messages: [{ role: "assistant" }] })).param).to.equal("messages[0].content");
  });

  it("refuses the choice of a tool that is not given", () => {
    const tools = [{ type: "function", function: { name: "find" } }];
    const tool_choice = { type: "function", function: { name: "other" } };
    expect(errorOf(() => parse({ tools, tool_choice })).param).to.equal("tool_choice");
    expect(errorOf(() => parse({ tool_choice: "required" })).param).to.equal("tool_choice");
    expect(parse({ tools, tool_choice: "required" }).toolChoice).to.equal("required");
    expect(parse({ tool_choice: "none" }).toolChoice).to.equal(undefined);
  });
});

describe("x-svc-options", () => {
  it("reads pairs separated by ; or ,", () => {
    expect(parseSvcOptions("compress=true; cache=false,cache-ttl=60")).to.deep.equal({
      compress: true,
      cache: false,
      cacheTtlSeconds: 60,
    });
    expect(parseSvcOptions(undefined)).to.deep.equal({});
  });
  it("refuses unknown options and values", () => {
    for (const header of ["compres=true", "compress=yes", "cache-ttl=-1", "compress", "=true"]) {
      const error = errorOf(() => parseSvcOptions(header));
      expect([error.code, error.param], header).to.deep.equal(["invalid_request", "x-svc-options"]);
    }
  });
});

describe("token estimate", () => {
  // Counts of o200k_base for these texts.
  const texts: [string, number][] = [
    ["The quick brown fox jumps over the lazy dog. It was a sunny day, and nobody was in a hurry.", 23],
    ["const total = items.reduce((sum, item) => sum + item.price * item.count, 0);", 22],
    ["Invoice 2026-11-20: 1,284.50 EUR for 37 units, paid by card 4242.", 28],
  ];
  it("is within a fifth of a real tokenizer on short texts", () => {
    for (const [text, tokens] of texts) expect(estimateTokens(text), text).to.be.within(tokens * 0.8, tokens * 1.2);
    expect(estimateTokens("")).to.equal(0);
  });
  it("takes linear time for a long run without spaces", () => {
    const text = "日本".repeat(200_000);
    expect(estimateTokens(text)).to.be.greaterThan(100_000);
    expect(cpuTimeOf(() => estimateTokens(text))).to.be.below(1_000);
  });
});

describe("retry", () => {
  const failed = (options: object = {}) => new AppError("provider_failed", "x", { retryable: true, ...options });
  it("retries transient failures up to a limit, and not silence", async () => {
    let attempts = 0;
    const signal = new AbortController().signal;
    const run = (error: unknown) => {
      attempts = 0;
      const attempt = () => {
        attempts++;
        return Promise.reject(error);
      };
      return withRetries(attempt, { signal, maxAttempts: 3 }).catch((thrown: unknown) => thrown);
    };
    const error = failed();
    expect([await run(error), attempts]).to.deep.equal([error, 3]);
    await run(new AppError("provider_failed", "x"));
    expect(attempts).to.equal(1);
    await run(new AppError("provider_timeout", "x", { retryable: true, reason: "silent" }));
    expect(attempts).to.equal(1);
    await run(failed({ retryAfterMs: 60_000 }));
    expect(attempts).to.equal(1);
  });

  it("obeys Retry-After and spreads the attempts", () => {
    expect(retryDelayMs(failed({ retryAfterMs: 1_500 }), 1, () => 0)).to.equal(1_500);
    expect([retryDelayMs(failed(), 1, () => 1), retryDelayMs(failed(), 2, () => 0)]).to.deep.equal([100, 400]);
    expect(isWorthRetry(new AppError("provider_timeout", "x", { retryable: true, reason: "unreachable" }))).to.equal(
      true,
    );
  });

  it("stops waiting when the caller leaves", async () => {
    const controller = new AbortController();
    const attempt = () => {
      setImmediate(() => controller.abort());
      return Promise.reject(failed({ retryAfterMs: 4_000 }));
    };
    const work = withRetries(attempt, { signal: controller.signal, maxAttempts: 3 }).catch((thrown: unknown) => thrown);
    const first = await Promise.race([work, delay(3_000, "the wait has gone on", { ref: false })]);
    expect(first).to.have.property("code", "client_closed");
  });
});

describe("circuit breaker", () => {
  const failure = new AppError("provider_failed", "x", { retryable: true });
  it("opens after failures in a row, lets one probe through, and closes on its success", () => {
    let now = 0;
    const breaker = makeBreaker("edge", () => now);
    const call = (error?: unknown) => breaker.enter().leave(error);
    for (let n = 0; n < 4; n++) call(failure);
    call();
    for (let n = 0; n < 5; n++) call(failure);
    expect(errorOf(() => breaker.enter()).details).to.deep.equal({ code: "breaker_open" });
    now = 1_000;
    const probe = breaker.enter();
    expect(errorOf(() => breaker.enter()).retryAfterMs).to.be.greaterThan(0);
    probe.leave(failure);
    now = 2_500;
    expect(breaker.isOpen()).to.equal(true);
    now = 3_000;
    call();
    expect(breaker.isOpen()).to.equal(false);
  });

  it("does not open for refused requests, rate limits, or callers that leave", () => {
    const breaker = makeBreaker("edge", () => 0);
    const harmless = [
      new AppError("provider_failed", "x"),
      new AppError("provider_rate_limited", "x", { retryable: true }),
      new AppError("client_closed", "x"),
    ];
    for (let n = 0; n < 30; n++) {
      breaker.enter().leave(harmless[n % 3]);
    }
    expect(breaker.isOpen()).to.equal(false);
  });

  it("opens when streams begin and never end well, and opens again at the next one", () => {
    let now = 0;
    const breaker = makeBreaker("edge", () => now);
    const cutStream = () => {
      const permit = breaker.enter();
      permit.begin();
      permit.leave(failure);
    };
    for (let n = 0; n < 5; n++) cutStream();
    expect(breaker.isOpen()).to.equal(true);
    now = 1_000;
    const probe = breaker.enter();
    expect(breaker.isOpen()).to.equal(true);
    probe.begin();
    expect(breaker.isOpen(), "a long stream does not keep others out").to.equal(false);
    probe.leave(failure);
    expect(breaker.isOpen()).to.equal(true);
    now = 3_000;
    breaker.enter().leave();
    expect(breaker.isOpen()).to.equal(false);
  });

  it("ignores the outcome of a call that began before it opened", () => {
    let now = 0;
    const breaker = makeBreaker("edge", () => now);
    const early = breaker.enter();
    for (let n = 0; n < 5; n++) breaker.enter().leave(failure);
    early.leave();
    expect(breaker.isOpen()).to.equal(true);
    now = 1_000;
    const probe = breaker.enter();
    early.leave();
    expect(breaker.isOpen(), "the probe is still under way").to.equal(true);
    probe.leave(new AppError("client_closed", "x"));
    expect(breaker.isOpen(), "a probe that its caller gave up leaves its place to the next").to.equal(false);
    breaker.enter();
    expect(breaker.isOpen()).to.equal(true);
  });
});
