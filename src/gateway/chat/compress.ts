import { makeShares } from "../../isolation/shares.ts";
import { functionWords } from "../../lib/common-words.ts";
import { inSlices, makeTextMeter, partsOf } from "../../lib/in-slices.ts";
import { type Message, textOf } from "../messages.ts";
import type { GatewayCaller } from "../money/account.ts";
import { estimateMessageTokens, estimateTokens, TOKENS_A_MESSAGE } from "../tokens.ts";
import type { CompressionReport } from "./outcome.ts";
import type { ChatRequest } from "./request.ts";
import { findNames, isPrecious, type Segment, toSegments } from "./segments.ts";
import type { StreamEvent } from "./stream.ts";

/** A context with fewer tokens than this is left as it is. */
const SHORT_TOKENS = 300;
/** Share of the context that compression aims to keep. */
const TARGET_RATIO = 0.55;
/** Shorter sentences may occur again without counting as a repetition, in characters. */
const MIN_REPEATED = 30;
/**
 * Maximum sentences and lines of a context; a context with more is not compressed. In 3 MB they would have 30 characters each.
 */
const MAX_SEGMENTS = 100_000;
/** How exactly sentences are compared: a millionth of a bit. */
const BITS_SCALE = 1e6;
/** Characters before a sentence that say whether its first word is inside one. */
const NAME_CONTEXT = 8;
/** Bits that a word of the question adds to the value of a sentence. */
const ASKED_BITS = 6;

/**
 * Shortens the context of a chat, meaning first: blanks are folded, repeated passages said once, and the least
 * informative sentences left out until the target is reached. It is extractive and deterministic: whole sentences go or stay. System prompts,
 * the last user message, tool calls and their results are not touched, nor is any sentence with a number, a name, an
 * address, a quotation or code, nor tables and JSON. A sentence is worth the mean self-information of its words
 * (Selective Context, Li 2023), here by their frequency in the context itself. It may take a tenth of a second: see `inSlices`.
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
  const tokensOf: number[] = [];
  let originalTokens = estimateTokens(request.systemPrompt ?? "");
  for (const [index, message] of messages.entries()) {
    const tokens = estimateMessageTokens([message]);
    tokensOf.push(context[index] === "" ? 0 : tokens - TOKENS_A_MESSAGE);
    originalTokens += tokens;
    yield;
  }
  const contextTokens = tokensOf.reduce((sum, tokens) => sum + tokens, 0);
  const unchanged = { originalTokens, compressedTokens: originalTokens, ratio: 1, techniques: [] };
  const segments = contextTokens < SHORT_TOKENS ? null : yield* toTexts(context);
  if (segments === null) return { request, report: unchanged };

  const techniques: string[] = [];
  const note = (technique: string, hasWorked: boolean) => hasWorked && techniques.push(technique);
  note("fold-blanks", yield* foldBlanks(segments));
  note("say-once", yield* dropRepeated(segments));
  const question = textOf(messages[lastUser]?.content ?? "");
  const goal = { question, targetTokens: contextTokens * TARGET_RATIO };
  note("drop-least-informative", yield* dropUninformative(segments, goal));
  if (techniques.length === 0) return { request, report: unchanged };

  const texts: string[] = [];
  let savedTokens = 0;
  for (const [index, parts] of segments.entries()) {
    const text = parts.map((part) => part.text).join("");
    texts.push(text);
    if (text !== context[index]) savedTokens += (tokensOf[index] ?? 0) - estimateTokens(text);
    yield;
  }
  const compressedTokens = originalTokens - savedTokens;
  if (savedTokens <= 0) return { request, report: unchanged };
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

/** The segments of each text; null if nothing may be left out, or if there are too many segments. */
function* toTexts(context: readonly string[]): Generator<void, Texts | null> {
  const texts: Texts = [];
  let left = MAX_SEGMENTS;
  let hasSentences = false;
  for (const text of context) {
    const segments = yield* toSegments(text, left);
    if (segments === null) return null;
    left -= segments.length;
    hasSentences ||= segments.some(({ kind }) => kind === "sentence");
    texts.push(segments);
  }
  return hasSentences ? texts : null;
}

/** Folds runs of blanks and of empty lines in sentences. */
function* foldBlanks(texts: Texts): Generator<void, boolean> {
  const isDue = makeTextMeter();
  let hasFolded = false;
  for (const segments of texts) {
    let emptyLines = 0;
    for (const segment of segments) {
      if (segment.kind === "fixed") {
        emptyLines = 0;
        continue;
      }
      if (isDue(segment.text.length)) yield;
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
  const isDue = makeTextMeter();
  const said = new Set<string>();
  let hasDropped = false;
  for (const segment of texts.flat()) {
    if (segment.kind === "fixed") continue;
    if (isDue(segment.text.length)) yield;
    const key = segment.text.trim().replace(/\s+/g, " ").toLowerCase();
    if (key.length < MIN_REPEATED) continue;
    if (said.has(key)) {
      segment.text = "";
      hasDropped = true;
    }
    said.add(key);
  }
  return hasDropped;
}

/** Leaves out the least informative sentences until the target is reached, or until only fixed parts are left. */
function* dropUninformative(texts: Texts, goal: { question: string; targetTokens: number }): Generator<void, boolean> {
  const isDue = makeTextMeter();
  const all = texts.flat();
  const { names, frequency, total, tokens } = yield* surveyOf(all);
  const asked = new Set(toWords(goal.question));
  const bitsOf = (word: string) =>
    Math.log2(Math.max(1, total) / (frequency.get(word) ?? 1)) + (asked.has(word) ? ASKED_BITS : 0);

  const droppable: Segment[] = [];
  /** The value of each sentence, with its place in the last digits, so that plain numbers can be sorted. */
  const worths: number[] = [];
  for (const segment of all) {
    if (segment.kind === "fixed" || segment.text.trim() === "") continue;
    if (isDue(segment.text.length)) yield;
    if (isPrecious(segment.text, names)) continue;
    const words = toWords(segment.text);
    const bits = words.reduce((sum, word) => sum + bitsOf(word), 0) / Math.max(1, words.length);
    worths.push(Math.round(bits * BITS_SCALE) * MAX_SEGMENTS + droppable.length);
    droppable.push(segment);
  }
  let left = tokens;
  let hasDropped = false;
  for (const worth of Float64Array.from(worths).sort()) {
    const segment = droppable[worth % MAX_SEGMENTS];
    if (segment === undefined || left <= goal.targetTokens) break;
    if (isDue(segment.text.length)) yield;
    left -= estimateTokens(segment.text);
    segment.text = segment.text.endsWith("\n") ? "\n" : "";
    hasDropped = true;
  }
  return hasDropped;
}

/** Statistics of a whole context: its names, the frequency of each word, and the number of words and tokens. */
function* surveyOf(all: readonly Segment[]) {
  const isDue = makeTextMeter();
  const names = new Set<string>();
  const frequency = new Map<string, number>();
  let [total, tokens] = [0, 0];
  let before = ""; // a capital is inside a sentence by what stands before it
  for (const { text } of all) {
    for (const part of partsOf(text)) {
      for (const name of findNames(`${before} ${part}`)) names.add(name);
      for (const word of toWords(part)) {
        frequency.set(word, (frequency.get(word) ?? 0) + 1);
        total += 1;
      }
      tokens += estimateTokens(part);
      before = part.slice(-NAME_CONTEXT);
      if (isDue(part.length)) yield;
    }
  }
  return { names, frequency, total, tokens };
}

function toWords(text: string): string[] {
  return (text.toLowerCase().match(/\p{L}[\p{L}'’-]*/gu) ?? []).filter((word) => !functionWords.has(word));
}

/** Compresses chats, one of a tenant at a time, as `compressing` does, without holding up others. @throws the signal's reason. */
export function makeCompressor() {
  const turns = makeShares({ size: Number.POSITIVE_INFINITY, perOwner: 1 });
  return async ({ tenantId, signal }: GatewayCaller, request: ChatRequest) => {
    const leave = await turns.enter(tenantId, signal);
    try {
      return await inSlices(compressing(request), signal);
    } finally {
      leave();
    }
  };
}

/** The stream of a compressed chat; its end says what compression did. */
export async function* withReport(batches: AsyncIterable<StreamEvent[]>, compression: CompressionReport) {
  for await (const batch of batches) {
    yield batch.map((event): StreamEvent => (event.type === "end" ? { ...event, compression } : event));
  }
}
