import { functionWords } from "../../common-words.ts";
import { inSlices } from "../../in-slices.ts";
import { makeShares } from "../../isolation/shares.ts";
import { estimateMessageTokens, estimateTokens } from "../count-tokens.ts";
import { type Message, textOf } from "../messages.ts";
import type { GatewayCaller } from "../money/account.ts";
import type { Chats } from "./cache.ts";
import type { CompressionReport } from "./outcome.ts";
import type { ChatRequest } from "./request.ts";
import { findNames, isPrecious, type Segment, toSegments } from "./segments.ts";
import type { StreamEvent } from "./stream.ts";

/** A context with fewer tokens than this is left as it is. */
const SHORT_TOKENS = 300;
/** The part of the context that is aimed at. */
const TARGET_RATIO = 0.55;
/** Sentences shorter than this are said again without being taken for a repetition, in characters. */
const MIN_REPEATED = 30;
/** Characters that are looked at before others may have their turn. */
const CHARACTERS_AT_ONCE = 16_384;
/** A word of the question makes a sentence worth this many more bits. */
const ASKED_BITS = 6;

/**
 * Shortens the context of a chat, meaning first: blanks are folded, repeated passages said once, and the least
 * informative sentences left out until the target is reached. It is extractive and deterministic: whole sentences go or stay. System prompts,
 * the last user message, tool calls and their results are not touched, nor is any sentence with a number, a name, an
 * address, a quotation or code, nor tables and JSON. A sentence is worth the mean self-information of its words
 * (Selective Context, Li 2023), here by their frequency in the context itself. It may take half a second: see `inSlices`.
 */
export function* compressing(
  request: ChatRequest,
): Generator<void, { request: ChatRequest; report: CompressionReport }> {
  const { messages } = request;
  const lastUser = messages.findLastIndex(({ role }) => role === "user");
  /** The text of a message that may be shortened; one with pictures or files, or with tool calls, stays as it is. */
  const contextOf = (message: Message, index: number) =>
    index !== lastUser &&
    (message.role === "user" || (message.role === "assistant" && !message.toolCalls && !message.parts)) &&
    typeof message.content === "string"
      ? message.content
      : "";
  const context = messages.map(contextOf);
  let contextTokens = 0;
  for (const text of context) {
    contextTokens += estimateTokens(text);
    yield;
  }
  const originalTokens = estimateMessageTokens(messages) + estimateTokens(request.systemPrompt ?? "");
  yield;
  const unchanged = { originalTokens, compressedTokens: originalTokens, ratio: 1, techniques: [] };
  if (contextTokens < SHORT_TOKENS) return { request, report: unchanged };

  const techniques: string[] = [];
  const segments: Texts = [];
  for (const text of context) segments.push(yield* toSegments(text));
  const note = (technique: string, hasWorked: boolean) => hasWorked && techniques.push(technique);
  note("fold-blanks", foldBlanks(segments));
  yield;
  note("say-once", yield* dropRepeated(segments));
  const question = textOf(messages[lastUser]?.content ?? "");
  const goal = { question, targetTokens: contextTokens * TARGET_RATIO };
  note("drop-least-informative", yield* dropUninformative(segments, goal));

  const texts: string[] = [];
  let savedTokens = contextTokens;
  for (const parts of segments) {
    const text = parts.map((part) => part.text).join("");
    texts.push(text);
    savedTokens -= estimateTokens(text);
    yield;
  }
  const compressedTokens = originalTokens - savedTokens;
  if (techniques.length === 0 || savedTokens <= 0) return { request, report: unchanged };
  return {
    request: {
      ...request,
      messages: messages.map((message, index) => (texts[index] ? { ...message, content: texts[index] } : message)),
    },
    report: {
      originalTokens,
      compressedTokens,
      ratio: Math.round((compressedTokens / originalTokens) * 1_000) / 1_000,
      techniques,
    },
  };
}

type Texts = Segment[][];

/** Folds runs of blanks and of empty lines in sentences. */
function foldBlanks(texts: Texts): boolean {
  let hasFolded = false;
  for (const segments of texts) {
    let emptyLines = 0;
    for (const segment of segments) {
      if (segment.kind === "fixed") {
        emptyLines = 0;
        continue;
      }
      const folded = segment.text.replace(/[ \t\u00a0]+/g, " ");
      emptyLines = folded.trim() === "" ? emptyLines + 1 : 0;
      const text = emptyLines > 1 ? "" : folded;
      hasFolded ||= text !== segment.text;
      segment.text = text;
    }
  }
  return hasFolded;
}

/** Leaves out sentences that were said before, anywhere in the context. */
function* dropRepeated(texts: Texts): Generator<void, boolean> {
  const said = new Set<string>();
  let hasDropped = false;
  let characters = 0;
  for (const segment of texts.flat()) {
    characters += segment.text.length + 1;
    if (characters > CHARACTERS_AT_ONCE) {
      characters = 0;
      yield;
    }
    const key = segment.text.trim().replace(/\s+/g, " ").toLowerCase();
    if (segment.kind === "fixed" || key.length < MIN_REPEATED) continue;
    if (said.has(key)) {
      segment.text = "";
      hasDropped = true;
    }
    said.add(key);
  }
  return hasDropped;
}

/** Leaves out the least informative sentences, until the target is reached or only what must stay is left. */
function* dropUninformative(texts: Texts, goal: { question: string; targetTokens: number }): Generator<void, boolean> {
  const all = texts.flat();
  const names = new Set<string>();
  const words: string[][] = [];
  const frequency = new Map<string, number>();
  let [total, tokens] = [0, 0];
  for (const { at, some } of partsOf(all)) {
    const before = all[at - 1]?.text ?? ""; // a capital is inside a sentence by what stands before it
    for (const name of findNames([before, ...some.map(({ text }) => text)].join(" "))) names.add(name);
    for (const { text } of some) {
      const own = toWords(text);
      words.push(own);
      for (const word of own) frequency.set(word, (frequency.get(word) ?? 0) + 1);
      total += own.length;
      tokens += estimateTokens(text);
    }
    yield;
  }
  const asked = new Set(toWords(goal.question));
  const bitsOf = (word: string) =>
    Math.log2(Math.max(1, total) / (frequency.get(word) ?? 1)) + (asked.has(word) ? ASKED_BITS : 0);

  const droppable: { segment: Segment; bits: number; index: number }[] = [];
  let characters = 0;
  for (const [index, segment] of all.entries()) {
    characters += segment.text.length + 1;
    if (characters > CHARACTERS_AT_ONCE) {
      characters = 0;
      yield;
    }
    if (segment.kind === "fixed" || segment.text.trim() === "" || isPrecious(segment.text, names)) continue;
    const own = words[index] ?? [];
    const bits = own.reduce((sum, word) => sum + bitsOf(word), 0) / Math.max(1, own.length);
    droppable.push({ segment, bits, index });
  }
  droppable.sort((a, b) => a.bits - b.bits || a.index - b.index);
  let hasDropped = false;
  for (const { segment } of droppable) {
    if (tokens <= goal.targetTokens) break;
    tokens -= estimateTokens(segment.text);
    segment.text = segment.text.endsWith("\n") ? "\n" : "";
    hasDropped = true;
  }
  return hasDropped;
}

/** Segments that follow each other, together of so many characters, or one that has more; `at`: the place of the first. */
function* partsOf(all: readonly Segment[]): Generator<{ at: number; some: readonly Segment[] }> {
  let [at, characters] = [0, 0];
  for (const [index, { text }] of all.entries()) {
    characters += text.length + 1;
    if (characters <= CHARACTERS_AT_ONCE && index < all.length - 1) continue;
    yield { at, some: all.slice(at, index + 1) };
    [at, characters] = [index + 1, 0];
  }
}

function toWords(text: string): string[] {
  return (text.toLowerCase().match(/\p{L}[\p{L}'’-]*/gu) ?? []).filter((word) => !functionWords.has(word));
}

/** Compresses chats whose callers want it, and reports with their outcome what was done: one of a tenant at a time. */
export function makeCompressedChat(chat: Chats): Chats {
  const turns = makeShares({ size: Number.POSITIVE_INFINITY, perOwner: 1 });
  const compress = async ({ tenantId, signal }: GatewayCaller, request: ChatRequest) => {
    const leave = await turns.enter(tenantId, signal);
    try {
      return await compressChat(request, signal);
    } finally {
      leave();
    }
  };
  return {
    async complete(caller, request) {
      if (request.options?.compress !== true) return chat.complete(caller, request);
      const { request: compressed, report: compression } = await compress(caller, request);
      return { ...(await chat.complete(caller, compressed)), compression };
    },
    stream(caller, request) {
      if (request.options?.compress !== true) return chat.stream(caller, request);
      return streamCompressed(chat, caller, () => compress(caller, request));
    },
  };
}

/** As `compressing`, without holding up others. @throws the signal's reason. */
export const compressChat = (request: ChatRequest, signal?: AbortSignal) => inSlices(compressing(request), signal);

async function* streamCompressed(chat: Chats, caller: GatewayCaller, compress: () => ReturnType<typeof compressChat>) {
  const { request, report } = await compress();
  yield* withReport(chat.stream(caller, request), report);
}

async function* withReport(batches: AsyncIterable<StreamEvent[]>, compression: CompressionReport) {
  for await (const batch of batches) {
    yield batch.map((event): StreamEvent => (event.type === "end" ? { ...event, compression } : event));
  }
}
