import {
  type AssistantPart,
  type ContentPart,
  type FilePart,
  type ImagePart,
  type Message,
  type ToolCall,
  textOf,
} from "./messages.ts";
import type { PictureRule, ProviderModel } from "./providers/model.ts";
import type { CompletionRequest, Usage } from "./providers/provider.ts";

/** What a chat format adds around each message: role and separators. */
export const TOKENS_A_MESSAGE = 4;
/** The same at most, and what a provider adds to a prompt that has tools. */
const MAX_TOKENS_A_MESSAGE = 16;
const MAX_TOKENS_OF_TOOLS = 1_024;
/** Of a text that is more than twice as long so many parts are counted, of so many characters each. */
const SAMPLES = 16;
const SAMPLE_CHARACTERS = 4_096;
/** Of reasoning, which is mostly base64. */
const CHARACTERS_A_TOKEN = 4;
const MAX_BYTES_A_CHARACTER = 3;

/**
 * Tokens that `text` is about, for the rare call whose provider reports no usage (an aborted stream, a bare server).
 *
 * A real tokenizer is not used here on purpose: its tables take 80 MB and a third of a second in every API process, and
 * its time grows with the square of a long run without spaces (measured: 14 s for 60,000 CJK characters), which an open
 * endpoint cannot afford. This is linear, and within about 15 % of o200k on prose, code and CJK. Of a long text samples are
 * counted: all of two megabytes would hold the process for 40 ms.
 */
export function estimateTokens(text: string): number {
  if (text.length <= 2 * SAMPLES * SAMPLE_CHARACTERS) return countTokens(text);
  const step = (text.length - SAMPLE_CHARACTERS) / (SAMPLES - 1);
  let tokens = 0;
  for (let n = 0; n < SAMPLES; n += 1) {
    const from = Math.floor(n * step);
    tokens += countTokens(text.slice(from, from + SAMPLE_CHARACTERS));
  }
  return Math.ceil((tokens * text.length) / (SAMPLES * SAMPLE_CHARACTERS));
}

function countTokens(text: string): number {
  let tokens = 0;
  let run = 0; // length of the word, or run of digits, being read
  let isDigits = false;
  const endRun = () => {
    if (run > 0) tokens += isDigits ? Math.ceil(run / 3) : Math.max(1, Math.round(run / 5.5));
    run = 0;
  };
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    const digit = code >= 48 && code <= 57;
    const letter = (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || (code >= 0xc0 && code < 0x2e80);
    if (digit || letter) {
      if (run > 0 && digit !== isDigits) endRun();
      isDigits = digit;
      run++;
      continue;
    }
    endRun();
    if (code >= 0x2e80) tokens += 0.75;
    else if (code > 32 && code < 127) tokens += 0.8;
  }
  endRun();
  return Math.ceil(tokens);
}

/** What is known of the model that counts. */
type Counted = Pick<ProviderModel, "pictures">;

/** The same for the messages of a request. */
export function estimateMessageTokens(messages: readonly Message[], model?: Counted): number {
  let tokens = 0;
  for (const message of messages) {
    tokens += TOKENS_A_MESSAGE + estimateTokens(textOf(message.content));
    if (typeof message.content !== "string") tokens += mediaTokens(message.content, estimateFileTokens, model);
    if (message.role !== "assistant") continue;
    if (message.toolCalls) tokens += estimateCallTokens(message.toolCalls);
    if (message.parts) tokens += reasoningCharacters(message.parts) / CHARACTERS_A_TOKEN;
  }
  return Math.ceil(tokens);
}

/** Tokens of the pictures and files of a content. Their base64 is no text. */
function mediaTokens(content: readonly ContentPart[], ofFile: typeof boundFileTokens, model: Counted = {}): number {
  const tokensOf = (part: ContentPart) => {
    if (part.type === "text") return 0;
    return part.type === "image" ? pictureTokens(part, model.pictures) : ofFile(part, model.pictures);
  };
  return content.reduce((sum, part) => sum + tokensOf(part), 0);
}

const reasoningCharacters = (parts: readonly AssistantPart[]) =>
  parts.reduce((sum, part) => sum + (part.type === "reasoning" ? JSON.stringify(part.item).length : 0), 0);

const estimateCallTokens = (calls: readonly ToolCall[]) =>
  calls.reduce((sum, call) => sum + estimateTokens(call.name) + estimateTokens(call.arguments), 0);

/** The usage of an exchange whose provider reported none. */
export function estimateUsage(
  { messages, model }: { messages: readonly Message[]; model: Counted | undefined },
  text: string,
  toolCalls: readonly ToolCall[],
): Usage {
  const outputTokens = estimateTokens(text) + estimateCallTokens(toolCalls);
  return { inputTokens: estimateMessageTokens(messages, model), outputTokens };
}

/** Tokens that `text` has at most: every tokenizer of the providers works on bytes, and a token has at least one. */
export const boundTokens = (text: string) => Buffer.byteLength(text, "utf8");

/** The same for everything of a request that its provider counts as the prompt. */
export function boundPromptTokens({ messages, tools, responseFormat }: CompletionRequest, model: Counted): number {
  let tokens = MAX_TOKENS_A_MESSAGE;
  for (const message of messages) {
    tokens += MAX_TOKENS_A_MESSAGE + boundTokens(textOf(message.content));
    if (typeof message.content !== "string") tokens += mediaTokens(message.content, boundFileTokens, model);
    if (message.role !== "assistant") continue;
    for (const call of message.toolCalls ?? [])
      tokens += MAX_TOKENS_A_MESSAGE + boundTokens(call.name + call.arguments);
    if (message.parts) tokens += MAX_BYTES_A_CHARACTER * reasoningCharacters(message.parts);
  }
  if (tools !== undefined) tokens += MAX_TOKENS_OF_TOOLS + boundTokens(JSON.stringify(tools));
  if (responseFormat !== undefined) tokens += boundTokens(JSON.stringify(responseFormat));
  return tokens;
}

/** Base64 in which a picture's size is looked for, in characters: 192 KiB, which is more than cameras write before it. */
const HEAD_CHARACTERS = 1 << 18;

/** Of a model whose rule is not known: the largest that is documented of an open model (Qwen2.5-VL, its model card). */
const unknownRule: PictureRule = { side: 28, tokens: 1, most: 16_384 };

/**
 * "PDF support", "Estimate your costs": 1,500 to 3,000 tokens of text a page, and each page as a picture, at most 600 pages
 * (https://platform.claude.com/docs/en/build-with-claude/pdf-support). OpenAI reads text and pictures of the pages, too.
 */
const PAGE = { usual: 2_000, most: 3_000 };
const MAX_PAGES = 600;
/** Bytes of a page: it seldom has fewer than the first, and about as many as the second. */
const PAGE_BYTES = { least: 1 << 10, usual: 32 << 10 };
/** What a file behind a URL is taken for by an estimate, in bytes. */
const LINKED_BYTES = 512 << 10;

/** Tokens of a picture, by its size and its model's rule; of one whose size is not known the most that it can have. */
export function pictureTokens({ url, detail = "auto" }: Omit<ImagePart, "type">, rule = unknownRule): number {
  const { side, tokens, base = 0, most, mostOf } = rule;
  const largest = mostOf?.[detail] ?? most;
  const squares = countSquares(url, side) ?? largest;
  return base + Math.ceil(Math.min(squares, largest) * tokens);
}

/** How many squares cover a picture; undefined where its data do not say how large it is. */
function countSquares(url: string, side: number): number | undefined {
  const size = sizeOfPicture(url);
  return size && Math.ceil(size.width / side) * Math.ceil(size.height / side);
}

/** The size of a picture by its URL; undefined where that has no data, or they do not say it. */
export function sizeOfPicture(url: string): PictureSize | undefined {
  if (!url.startsWith("data:")) return undefined;
  const start = url.indexOf(",") + 1;
  return readPictureSize(Buffer.from(url.slice(start, start + HEAD_CHARACTERS), "base64"));
}

/** Tokens that a PDF is about, by its bytes. */
const estimateFileTokens = (part: FilePart, rule?: PictureRule) =>
  Math.min(Math.ceil((bytesOf(part) ?? LINKED_BYTES) / PAGE_BYTES.usual), MAX_PAGES) * pageTokens(PAGE.usual, rule);

/** Tokens that a PDF has at most: more than one page a KiB have no more text than that. */
const boundFileTokens = (part: FilePart, rule?: PictureRule) =>
  Math.min(Math.ceil((bytesOf(part) ?? Infinity) / PAGE_BYTES.least), MAX_PAGES) * pageTokens(PAGE.most, rule);

const pageTokens = (text: number, rule?: PictureRule) => text + pictureTokens({ url: "", detail: "high" }, rule);

/** Undefined for one that its provider reads from a URL. */
const bytesOf = ({ url }: FilePart) => (url.startsWith("data:") ? (url.length * 3) / 4 : undefined);

type PictureSize = { width: number; height: number };

/** A head of any of the formats is longer, in bytes. */
const LEAST_HEAD = 30;
/** Segments of a JPEG that are looked at; cameras write some ten before the frame's. */
const MAX_SEGMENTS = 100;

/**
 * The size of a PNG, GIF, WebP or JPEG in pixels, by the first of its bytes; undefined where they do not say it. It costs a
 * few reads, and for a JPEG one a segment: libraries that look for the next marker byte by byte take 20 ms for 64 KiB of none.
 */
export function readPictureSize(head: Buffer): PictureSize | undefined {
  if (head.length < LEAST_HEAD) return undefined;
  const size = readSize(head);
  return size && size.width > 0 && size.height > 0 ? size : undefined;
}

function readSize(head: Buffer): PictureSize | undefined {
  const nameAt = (from: number) => head.toString("latin1", from, from + 4);
  if (nameAt(12) === "IHDR") return { width: head.readUInt32BE(16), height: head.readUInt32BE(20) };
  if (nameAt(0) === "GIF8") return { width: head.readUInt16LE(6), height: head.readUInt16LE(8) };
  if (nameAt(8) === "WEBP") return readWebp(head, nameAt(12));
  return head.readUInt16BE(0) === 0xffd8 ? readJpeg(head) : undefined;
}

/** https://developers.google.com/speed/webp/docs/riff_container, and RFC 6386, section 9.1, of a lossy one. */
function readWebp(head: Buffer, chunk: string): PictureSize | undefined {
  if (chunk === "VP8X") return { width: 1 + head.readUIntLE(24, 3), height: 1 + head.readUIntLE(27, 3) };
  if (chunk === "VP8 ") return { width: head.readUInt16LE(26) & 0x3fff, height: head.readUInt16LE(28) & 0x3fff };
  const bits = head.readUInt32LE(21);
  return chunk === "VP8L" ? { width: 1 + (bits & 0x3fff), height: 1 + ((bits >>> 14) & 0x3fff) } : undefined;
}

/** From segment to segment to the frame's header (ITU T.81, annex B): it is the one that has a size. */
function readJpeg(head: Buffer): PictureSize | undefined {
  let at = 2;
  for (let segment = 0; segment < MAX_SEGMENTS && at + 9 <= head.length && head[at] === 0xff; segment += 1) {
    const marker = head.readUInt8(at + 1);
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrame) return { width: head.readUInt16BE(at + 7), height: head.readUInt16BE(at + 5) };
    at += 2 + head.readUInt16BE(at + 2);
  }
  return undefined;
}
