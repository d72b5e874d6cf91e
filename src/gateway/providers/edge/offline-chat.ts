import { createHash } from "node:crypto";
import { type Content, type ImagePart, type Message, type ToolCall, textOf } from "../../messages.ts";
import { sizeOfPicture } from "../../tokens.ts";
import type { CompletionRequest, CompletionResult, StreamPart, ToolDefinition } from "../provider.ts";
import { minimalValue } from "./offline-json.ts";
import { contentWords, cutText, rankSentences, toSentences } from "./offline-rank.ts";

/** Name of the built-in chat model, in `/ai/models` and in every answer's `model`. */
export const offlineModelId = "switchyard-offline";

/** Sentences of an answer, at most; a further one must be at least this good beside the best. */
const MAX_SENTENCES = 3;
const WORTH_SAYING = 0.5;
/** Characters at the end of a question that say what is asked; a longer one is a text to be worked on. */
const MAX_ASKED = 8_000;
/** The tokenizer's tables are not worth their memory here. */
const CHARACTERS_A_TOKEN = 4;
const TOKENS_A_CALL = 10;

/** Characters that the arguments of a call are filled with: fields and a question, each of a caller's, would multiply. */
const MAX_FILLED = 1 << 20;

/** Instructions to the model are not quoted; callers mark them like this. */
const instructions = /<instructions>[\s\S]*?<\/instructions>/g;

const introduction =
  "I am switchyard-offline, the small model that is built into Switchyard. I answer by quoting the sentences of our conversation that fit a question best; I know nothing beyond it.";
const nothingFound =
  "I find nothing about that in our conversation. I am an offline model that only quotes what it is given: add passages, or configure a provider.";

/**
 * Answers without a model: the sentences of the conversation (system prompt, passages, earlier turns, tool results) that
 * share most with the last user message, in their order. Deterministic; asks for a tool when one that fits has not been
 * used yet. It never says more than it was given. A long conversation takes some hundredths of a second: see `inSlices`.
 */
export function* completingOffline(request: CompletionRequest): Generator<void, CompletionResult> {
  const { messages, stop, maxTokens } = request;
  const asked = messages.findLastIndex(({ role }) => role === "user");
  const question = textOf(messages[asked]?.content ?? "");
  const call = chooseTool(request, question, asked);
  const whole = call ? "" : cutAtStop(yield* toText(request, asked, question), stop);
  const text = maxTokens === undefined ? whole : cutText(whole, maxTokens * CHARACTERS_A_TOKEN);
  const toolCalls = call ? [call] : [];
  const inputTokens = messages.reduce((sum, { content }) => sum + toTokens(textOf(content)), 0);
  return {
    text,
    toolCalls,
    finishReason: call ? "tool_calls" : text.length < whole.length ? "length" : "stop",
    usage: { inputTokens, outputTokens: toTokens(text) + toolCalls.length * TOKENS_A_CALL },
    model: offlineModelId,
  };
}

/** An answer in the form that is asked for. */
function* toText(
  { messages, responseFormat: format }: CompletionRequest,
  asked: number,
  question: string,
): Generator<void, string> {
  const pictures = describePictures(messages.slice(asked).map(({ content }) => content));
  const answer = yield* response(messages, asked, question);
  const text = pictures === "" ? answer : isOwn(answer) ? pictures : `${pictures} ${answer}`;
  if (format === undefined) return text;
  if (format.type === "json_object") return JSON.stringify({ answer: text });
  return JSON.stringify(minimalValue(format.json_schema.schema, text));
}

function cutAtStop(text: string, stop: readonly string[] = []): string {
  const ends = stop.map((sequence) => text.indexOf(sequence)).filter((at) => at >= 0);
  return text.slice(0, Math.min(text.length, ...ends));
}

/** The same answer, word by word. */
export function* toParts({ text, toolCalls, usage, finishReason }: CompletionResult): Generator<StreamPart[]> {
  for (const word of text.match(/\s*\S+\s*$|\s*\S+/g) ?? []) yield [{ type: "text-delta", text: word }];
  for (const [index, { id, name, arguments: argumentsDelta }] of toolCalls.entries()) {
    yield [{ type: "tool-call-delta", index, id, name, argumentsDelta }];
  }
  if (usage) yield [{ type: "usage", usage }];
  yield [{ type: "end", finishReason }];
}

function* response(messages: readonly Message[], asked: number, question: string): Generator<void, string> {
  const lines = question.split("\n");
  // Passages are often given in the question's own message: its last paragraph is then what is asked.
  const paragraph = lines.findLast((line) => line.trim().length > 0) ?? "";
  const ask = paragraph.slice(-MAX_ASKED);
  const before = lines.slice(0, Math.max(0, lines.lastIndexOf(paragraph))).join("\n");
  if (contentWords(ask).length === 0 || /\b(?:who|what) are you\b/i.test(ask)) return introduction;
  const others = messages.filter(({ content }, index) => index !== asked && content.length > 0);
  const texts = others.map(({ content }) => textOf(content));
  const context = [...texts, before].join("\n").replace(instructions, "");
  const sentences = toSentences(context).filter((sentence) => !isOwn(sentence) && !isHead(sentence));
  const marks = marksOf(texts);
  yield;
  const ranked = yield* rankSentences(sentences, ask);
  const best = ranked[0];
  if (!best) return sentences.every(isTitle) ? `${introduction} You asked: ${ask.trim().slice(0, 200)}` : nothingFound;
  return ranked
    .slice(0, MAX_SENTENCES)
    .filter(({ score }) => score >= best.score * WORTH_SAYING)
    .sort((a, b) => a.index - b.index)
    .map(({ sentence }) => `${sentence}${marks.get(sentence) ?? ""}`)
    .join(" ");
}

/** Do not quote our own boilerplate from earlier turns. */
function isOwn(sentence: string): boolean {
  if (sentence.startsWith("You asked: ") || sentence.startsWith(introduction)) return true;
  return introduction.includes(sentence) || nothingFound.includes(sentence);
}

/** A line in brackets names what follows it. */
const isTitle = (sentence: string) => /^\[.*\]$/.test(sentence);

/** The tool to ask for: the one that is demanded, else one that fits the question and has not been used since it. */
function chooseTool({ tools = [], toolChoice, messages }: CompletionRequest, question: string, asked: number) {
  if (tools.length === 0 || toolChoice === "none") return undefined;
  const since = messages.slice(asked + 1);
  const calls = since.flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : []));
  const used = new Set(calls.map(({ name }) => name));
  const isDemanded = toolChoice !== undefined && toolChoice !== "auto";
  if (isDemanded && since.length > 0) return undefined; // it was asked for already: now comes the answer
  if (typeof toolChoice === "object") {
    const named = tools.find(({ name }) => name === toolChoice.name);
    return named && toCall(named, question, messages.length);
  }
  const words = new Set(contentWords(question.slice(-MAX_ASKED)));
  const fitting = tools.map((tool) => ({ tool, fit: fitOf(tool, words) })).sort((a, b) => b.fit - a.fit);
  const best = fitting.find(({ tool, fit }) => !used.has(tool.name) && (fit > 0 || isDemanded));
  return best && toCall(best.tool, question, messages.length);
}

/** How well a tool fits: words shared with the question; a tool that searches fits any question a little. */
function fitOf(tool: ToolDefinition, asked: ReadonlySet<string>): number {
  const own = contentWords(`${tool.name.replace(/[_-]/g, " ")} ${tool.description ?? ""}`);
  const shared = own.filter((word) => asked.has(word)).length;
  const isSearch = /rag|search|query|lookup|retriev/i.test(tool.name);
  return shared + (isSearch && asked.size > 0 ? 0.5 : 0);
}

function toCall(tool: ToolDefinition, question: string, position: number): ToolCall {
  const id = `call_${createHash("sha256").update(`${position}:${tool.name}:${question}`).digest("hex").slice(0, 24)}`;
  return { id, name: tool.name, arguments: JSON.stringify(fillArguments(tool, question)) };
}

/** Fills the required arguments (else the first text): texts with the question, numbers with those it names. */
function fillArguments(tool: ToolDefinition, question: string): Record<string, unknown> {
  const properties = toRecord(tool.parameters?.properties);
  const required = toList(tool.parameters?.required).filter((name) => typeof name === "string");
  const numbers = (question.match(/-?\d+(?:\.\d+)?/g) ?? []).map(Number);
  const firstText = Object.keys(properties).find((name) => toRecord(properties[name]).type === "string");
  const wanted = required.length > 0 ? required : firstText ? [firstText] : [];
  let room = MAX_FILLED;
  const text = () => {
    const said = cutText(question.trim(), room);
    room -= said.length;
    return said;
  };
  const fill = (name: string): unknown => {
    const { type, enum: values } = toRecord(properties[name]);
    const allowed = toList(values);
    if (allowed.length > 0) return allowed.find((value) => question.includes(String(value))) ?? allowed[0];
    if (type === "number" || type === "integer") return numbers.shift() ?? 0;
    if (type === "boolean") return true;
    if (type === "array") return [];
    return type === "object" ? {} : text();
  };
  return Object.fromEntries(wanted.map((name) => [name, fill(name)]));
}

/** A part of a JSON Schema as the caller gave it; what is not of the expected shape counts as absent. */
function toRecord(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
}

const toList = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

const toTokens = (text: string) => Math.ceil(text.length / CHARACTERS_A_TOKEN);

/** The head of a passage that is to be cited by its mark: `【3】 pump.txt`. */
const head = /^【\d+】.*$/m;
const passage = /^(【\d+】).*\n([\s\S]*?)(?=^【\d+】|(?![\s\S]))/gm;

/** Whether a sentence is the head of a passage, and says nothing. */
const isHead = (sentence: string): boolean => head.test(sentence);

/** The marks of the passages that sentences stand in. */
function marksOf(texts: readonly string[]): Map<string, string> {
  const marks = new Map<string, string>();
  for (const text of texts) {
    if (!head.test(text)) continue;
    for (const [, mark = "", content = ""] of text.matchAll(passage))
      for (const sentence of toSentences(content)) if (!marks.has(sentence)) marks.set(sentence, mark);
  }
  return marks;
}

/** Pictures that an answer describes one by one. */
const MAX_DESCRIBED = 10;

/** What can be said of pictures without seeing them, as sentences; empty where there are none. */
function describePictures(contents: readonly Content[]): string {
  const pictures = contents.flatMap((content) =>
    typeof content === "string" ? [] : content.filter((part) => part.type === "image"),
  );
  const [only] = pictures;
  if (!only) return "";
  const closing = "I am an offline model and do not see what is in pictures.";
  if (pictures.length === 1) return `The picture is ${describe(only)}. ${closing}`;
  const described = pictures.slice(0, MAX_DESCRIBED).map((one, place) => `Picture ${place + 1} is ${describe(one)}.`);
  return [`There are ${pictures.length} pictures.`, ...described, closing].join(" ");
}

function describe({ url }: ImagePart): string {
  const format = /^data:image\/(\w{1,10});/.exec(url)?.[1];
  if (format === undefined) return `behind a link to ${URL.parse(url)?.host ?? "a page"}, which I do not open`;
  const size = sizeOfPicture(url);
  const name = `a ${format === "webp" ? "WebP" : format.toUpperCase()}`;
  return size ? `${name} of ${size.width} by ${size.height} pixels` : `${name} of a size that it does not report`;
}
