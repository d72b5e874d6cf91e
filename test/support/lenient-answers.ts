import type { Asked, Said } from "./four-surfaces.ts";
import {
  chatAnswer,
  chunk,
  DONE,
  eventsOf,
  everywhere,
  messageAnswer,
  type OddAnswer,
  responseAnswer,
} from "./odd-answers.ts";

export type Expected = Partial<Omit<Said, "error">> & { error?: Record<string, unknown> };
export type Case = { it: string; answer: OddAnswer; says: Expected; asked?: Partial<Asked>; model?: string };

export const key = "sk-odd-servers-0123456789abcdef";
export const call = (id: unknown, json: unknown, more: object = {}) => ({
  id,
  type: "function",
  function: { name: "lookup", arguments: json },
  ...more,
});
export const [a, b] = ['{"q":"a"}', '{"q":"b"}'];
export const callsOf = (...calls: object[]) => ({ content: null, tool_calls: calls });
export const each = (...calls: object[]) => calls.map((one) => ({ tool_calls: [one] }));
export const two = [
  { name: "lookup", arguments: a },
  { name: "lookup", arguments: b },
];
export const one = [{ name: "lookup", arguments: a }];
export const withTools = { tools: true };
export const text = (content: unknown) => ({ message: { content } });

export const finishes: [unknown, string, string?][] = [
  ["length", "length"],
  ["model_length", "length"],
  ["MAX_TOKENS", "length"],
  ["maxTokens", "length"],
  ["SAFETY", "content_filter"],
  ["sensitive", "content_filter"],
  ["eos", "stop"],
  ["STOP", "stop"],
  ["weird_new_word", "length", "weird_new_word"],
];

export const ends: Case[] = [
  ...finishes.map(([word, finish, own]): Case => {
    return {
      it: `ends with ${word} as ${finish}`,
      answer: chatAnswer({ ...text("half"), finish: word }),
      says: { text: "half", finish, own },
    };
  }),
  {
    it: "ends with Anthropic's pause_turn as cut",
    model: "msg",
    answer: messageAnswer([{ type: "text", text: "half" }], "pause_turn"),
    says: { text: "half", finish: "length", own: "pause_turn" },
  },
  {
    it: "ends with Anthropic's refusal as filtered",
    model: "msg",
    answer: messageAnswer([{ type: "text", text: "no" }], "refusal"),
    says: { text: "no", finish: "content_filter" },
  },
  {
    it: "ends with an incomplete response of an unknown reason as cut",
    model: "resp",
    answer: responseAnswer([{ type: "message", content: [{ type: "output_text", text: "half" }] }], {
      status: "incomplete",
      incomplete_details: { reason: "quota_of_the_day" },
    }),
    says: { text: "half", finish: "length", own: "quota_of_the_day" },
  },
];

export const calls: Case[] = [
  {
    it: "repeats the index of calls",
    answer: chatAnswer({
      message: callsOf(call("call_a", a), call("call_b", b)),
      deltas: each(call("call_a", a, { index: 0 }), call("call_b", b, { index: 0 })),
      finish: "tool_calls",
    }),
    says: { calls: two as Said["calls"] },
  },
  {
    it: "gives no index",
    answer: chatAnswer({
      message: callsOf(call("call_a", a), call("call_b", b)),
      deltas: each(call("call_a", a), call("call_b", b)),
      finish: "tool_calls",
    }),
    says: { calls: two as Said["calls"] },
  },
  {
    it: "gives two calls one id",
    answer: chatAnswer({
      message: callsOf(call("x", a), call("x", b)),
      deltas: each(call("x", a, { index: 0 }), call("x", b, { index: 1 })),
      finish: "tool_calls",
    }),
    says: { calls: two as Said["calls"] },
  },
  {
    it: "gives empty ids",
    answer: chatAnswer({
      message: callsOf(call("", a), call("", b)),
      deltas: each(call("", a, { index: 0 }), call("", b, { index: 1 })),
      finish: "tool_calls",
    }),
    says: { calls: two as Said["calls"] },
  },
  {
    it: "gives empty ids and one index",
    answer: chatAnswer({
      message: callsOf(call("", a), call("", b)),
      deltas: each(call("", a, { index: 0 }), call("", b, { index: 0 })),
      finish: "tool_calls",
    }),
    says: { calls: two as Said["calls"] },
  },
  {
    it: "gives no ids",
    answer: chatAnswer({
      message: callsOf(call(undefined, a), call(undefined, b)),
      deltas: [{ tool_calls: [call(undefined, a), call(undefined, b)] }],
      finish: "tool_calls",
    }),
    says: { calls: two as Said["calls"] },
  },
  {
    it: "gives arguments as an object",
    answer: chatAnswer({ message: callsOf(call("call_a", { q: "a" }, { index: 0 })), finish: "tool_calls" }),
    says: { calls: one as Said["calls"] },
  },
  {
    it: "gives arguments as JSON in JSON",
    answer: chatAnswer({ message: callsOf(call("call_a", JSON.stringify(a), { index: 0 })), finish: "tool_calls" }),
    says: { calls: one as Said["calls"] },
  },
  {
    it: "gives null for no arguments",
    answer: chatAnswer({ message: callsOf(call("call_a", null, { index: 0 })), finish: "tool_calls" }),
    says: { calls: [{ name: "lookup", arguments: "{}" }] as Said["calls"] },
  },
  {
    it: "gives an empty text for no arguments",
    answer: chatAnswer({ message: callsOf(call("call_a", "", { index: 0 })), finish: "tool_calls" }),
    says: { calls: [{ name: "lookup", arguments: "{}" }] as Said["calls"] },
  },
  {
    it: "repeats id and name with each part",
    answer: chatAnswer({
      message: callsOf(call("call_a", a), call("call_b", b)),
      deltas: each(
        call("call_a", '{"q":', { index: 0 }),
        call("call_a", '"a"}', { index: 0 }),
        call("call_b", '{"q":', { index: 1 }),
        call("call_b", '"b"}', { index: 1 }),
      ),
      finish: "tool_calls",
    }),
    says: { calls: two as Said["calls"] },
  },
  {
    it: "sends the parts of two calls in turns",
    answer: chatAnswer({
      message: callsOf(call("call_a", a), call("call_b", b)),
      deltas: each(
        call("call_a", '{"q":', { index: 0 }),
        call("call_b", '{"q":', { index: 1 }),
        { index: 0, function: { arguments: '"a"}' } },
        { index: 1, function: { arguments: '"b"}' } },
      ),
      finish: "tool_calls",
    }),
    says: { calls: two as Said["calls"] },
  },
  {
    it: "sends a name in pieces",
    answer: chatAnswer({
      message: callsOf(call("call_a", a)),
      deltas: each(
        { index: 0, id: "call_a", function: { name: "look", arguments: "" } },
        { index: 0, function: { name: "up", arguments: a } },
      ),
      finish: "tool_calls",
    }),
    says: { calls: one as Said["calls"] },
  },
  {
    it: "begins arguments with an empty object",
    answer: chatAnswer({
      message: callsOf(call("call_a", a)),
      deltas: each(call("call_a", "{}", { index: 0 }), { index: 0, function: { arguments: a } }),
      finish: "tool_calls",
    }),
    says: { calls: one as Said["calls"] },
  },
  {
    it: "puts a namespace before the name",
    answer: chatAnswer({
      message: callsOf({ id: "call_a", index: 0, function: { name: "functions.lookup", arguments: a } }),
      finish: "tool_calls",
    }),
    says: { calls: one as Said["calls"] },
  },
  {
    it: "calls in the older form",
    answer: chatAnswer({
      message: { content: null, function_call: { name: "lookup", arguments: a } },
      finish: "function_call",
    }),
    says: { calls: one as Said["calls"] },
  },
  {
    it: "says stop although it calls",
    answer: chatAnswer({ message: callsOf(call("call_a", a, { index: 0 })), finish: "stop" }),
    says: { calls: one as Said["calls"], finish: "tool_calls" },
  },
  {
    it: "says something after a call without arguments",
    answer: chatAnswer({
      message: { content: "so", tool_calls: [call("call_a", "", { index: 0 })] },
      deltas: [...each(call("call_a", "", { index: 0 })), { content: "so" }],
      finish: "tool_calls",
    }),
    says: { text: "so", calls: [{ name: "lookup", arguments: "{}" }] as Said["calls"] },
  },
  {
    it: "gives Anthropic's calls one id",
    model: "msg",
    answer: messageAnswer(
      [
        { type: "tool_use", id: "x", name: "lookup", input: { q: "a" } },
        { type: "tool_use", id: "x", name: "lookup", input: { q: "b" } },
      ],
      "tool_use",
    ),
    says: { calls: two as Said["calls"] },
  },
  {
    it: "gives arguments of a response as an object, and no call id",
    model: "resp",
    answer: responseAnswer([{ type: "function_call", id: "fc_1", name: "lookup", arguments: { q: "a" } }], {
      status: "completed",
    }),
    says: { calls: one as Said["calls"] },
  },
].map((one) => ({ ...one, asked: withTools }));

export const contents: Case[] = [
  {
    it: "gives a content of parts",
    answer: chatAnswer({
      message: {
        content: [
          { type: "text", text: "one " },
          { type: "text", text: "two" },
        ],
      },
    }),
    says: { text: "one two", finish: "stop" },
  },
  {
    it: "puts what it thought among the parts",
    answer: chatAnswer({
      message: {
        content: [
          { type: "thinking", thinking: [{ type: "text", text: "hm" }] },
          { type: "text", text: "two" },
        ],
      },
    }),
    says: { text: "two" },
  },
  {
    it: "answers a stream with JSON",
    answer: { ...chatAnswer(text("whole")), stream: chatAnswer(text("whole")).json },
    says: { text: "whole", finish: "stop", output: 5 },
  },
  {
    it: "puts JSON into a fence",
    asked: { schema: true },
    answer: chatAnswer({
      message: { content: '```json\n{"a":1}\n```' },
      deltas: ["``", "`json", '\n{"a"', ":1}\n", "```"].map((content) => ({ content })),
    }),
    says: { text: '{"a":1}' },
  },
  {
    it: "says that nothing is finished with an empty reason",
    answer: {
      json: chatAnswer(text("hello")).json,
      stream: eventsOf(chunk({ content: "hel" }, ""), chunk({ content: "lo" }, ""), chunk({}, "stop"), DONE),
    },
    says: { text: "hello", finish: "stop" },
  },
];

export const usages: Case[] = [
  {
    it: "counts nothing for a text",
    answer: chatAnswer({
      ...text("some words that cost something"),
      usage: { prompt_tokens: 0, completion_tokens: 0 },
    }),
    says: { finish: "stop" },
  },
  {
    it: "counts in texts",
    answer: chatAnswer({ ...text("hello"), usage: { prompt_tokens: "100", completion_tokens: "50" } }),
    says: { input: 100, output: 50 },
  },
  {
    it: "counts what it thought beside the answer",
    answer: chatAnswer({
      ...text("hello"),
      usage: {
        prompt_tokens: 10,
        completion_tokens: 5,
        total_tokens: 115,
        completion_tokens_details: { reasoning_tokens: 100 },
      },
    }),
    says: { input: 10, output: 105 },
  },
  {
    it: "counts nothing at last",
    answer: {
      json: chatAnswer(text("hello")).json,
      stream: eventsOf(
        chunk({ content: "hello" }, null, { usage: { prompt_tokens: 10, completion_tokens: 5 } }),
        chunk({}, "stop", { usage: { prompt_tokens: 0, completion_tokens: 0 } }),
        DONE,
      ),
    },
    says: { input: 10, output: 5 },
  },
];

export const errorOf = (error: object) => everywhere({ error });
export const badGateway = { code: 502, message: `Worker limit reached for ${key} and ${key.slice(0, 12)}***` };
export const inStream = (...before: string[]) =>
  eventsOf(...before, `data: ${JSON.stringify({ choices: [], error: badGateway })}\n\n`, DONE);
export const failures: Case[] = [
  {
    it: "reports an error with status 200",
    answer: errorOf(badGateway),
    says: {
      error: { code: "provider_failed", status: 502, provider: /Worker limit reached for \[key\] and \[key\]$/ },
    },
  },
  {
    it: "reports a wrong request with status 200",
    answer: errorOf({ code: 400, message: "too long" }),
    says: { error: { code: "provider_rejected", status: 400, provider: /too long/ } },
  },
  {
    it: "reports a limit with status 200",
    answer: errorOf({ type: "rate_limit_error", message: "slow down" }),
    says: { error: { code: "provider_rate_limited", status: 429, provider: /slow down/ } },
  },
  {
    it: "reports an error before any text",
    answer: { json: errorOf(badGateway).json, stream: inStream() },
    says: { error: { code: "provider_failed", status: 502, provider: /Worker limit/ } },
  },
  {
    it: "refuses as FastAPI does",
    answer: everywhere({ detail: [{ loc: ["body", "temperature"], msg: "too large", type: "value_error" }] }, 422),
    says: { error: { code: "provider_rejected", provider: /^temperature: too large$/ } },
  },
  {
    it: "refuses as vLLM does",
    answer: everywhere({ object: "error", message: "no such thing", type: "BadRequestError", code: 400 }, 400),
    says: { error: { code: "provider_rejected", provider: /no such thing/ } },
  },
  {
    it: "refuses as Gemini does",
    answer: everywhere([{ error: { code: 400, message: "bad", status: "INVALID_ARGUMENT" } }], 400),
    says: { error: { code: "provider_rejected", provider: /bad/ } },
  },
  {
    it: "fails with a message",
    answer: everywhere({ error: { message: "engine is down" } }, 503),
    says: { error: { code: "provider_failed", provider: /engine is down/ } },
  },
];
