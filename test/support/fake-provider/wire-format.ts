import { estimateMessageTokens, estimateTokens } from "../../../src/gateway/tokens.ts";
import { type Behaviour, type FakeUsage, piecesOf } from "./behaviour.ts";

/** What the fake reads of a request, whichever it is; the rest is there for tests to look at. */
export type WireRequest = {
  [field: string]: unknown;
  model: string;
  stream?: boolean;
  stream_options?: { include_usage?: boolean };
  messages?: unknown[];
  system?: string;
  /** Texts to embed, or the items of a response's input. */
  input?: string | (string | Record<string, unknown>)[];
  encoding_format?: string;
  dimensions?: number;
  max_tokens?: number;
  temperature?: number;
};

/** One event of a stream. Faults strike between pieces; `text` is what a piece adds to the answer. */
export type WireEvent = { kind: "head" | "piece" | "tail"; event?: string; data: unknown; text?: string };

/** One endpoint's wire format. */
export type WireFormat = {
  /** What the real API says to a request that it does not take; undefined when it does. */
  refuse(body: WireRequest, headers: Record<string, unknown>): Behaviour | undefined;
  /** The JSON answer. */
  toAnswer(body: WireRequest, behaviour: Behaviour): unknown;
  /** The events of a streamed answer; none when the endpoint has no streams. */
  toEvents(body: WireRequest, behaviour: Behaviour): WireEvent[];
  /** What follows the last event. */
  closing: string;
  toError(behaviour: Behaviour): unknown;
  /** An error in the middle of a stream, and one that is not JSON, as they stand on the wire. */
  errorEvent: string;
  malformedEvent: string;
};

/** What a request and an answer are worth, by the product's own estimate: for servers that tell no usage. */
export function countUsage(body: WireRequest, text: string): FakeUsage {
  const system = body.system === undefined ? [] : [{ role: "system" as const, content: body.system }];
  const items = [body.input ?? []].flat().filter((item) => typeof item !== "string");
  const said = [...(body.messages ?? []), ...items];
  const messages = said.map((message) => ({ role: "user" as const, content: contentOf(message) }));
  const inputs = inputTexts(body).reduce((sum, input) => sum + estimateTokens(input), 0);
  return {
    prompt_tokens: estimateMessageTokens([...system, ...messages]) + inputs,
    completion_tokens: estimateTokens(text),
  };
}

/** The texts that are to be embedded. */
export const inputTexts = (body: WireRequest) => [body.input ?? []].flat().filter((item) => typeof item === "string");

function contentOf(message: unknown): string {
  const content = typeof message === "object" && message !== null && "content" in message ? message.content : "";
  return typeof content === "string" ? content : "";
}

/** All that an answer says. */
export function textOf(behaviour: Behaviour): string {
  const calls = (behaviour.toolCalls ?? []).map((call) => `${call.name} ${call.arguments}`);
  return [behaviour.reasoning ?? "", ...piecesOf(behaviour), ...calls].join("");
}
