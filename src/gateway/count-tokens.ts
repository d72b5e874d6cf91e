import { boundFileTokens, estimateFileTokens, pictureTokens } from "./media-tokens.ts";
import { type AssistantPart, type ContentPart, type Message, type ToolCall, textOf } from "./messages.ts";
import type { ProviderModel } from "./providers/model.ts";
import type { CompletionRequest, Usage } from "./providers/provider.ts";

/** What a chat format adds around each message: role and separators. */
export const TOKENS_A_MESSAGE = 4;
/** The same at most, and what a provider adds to a prompt that has tools. */
const MAX_TOKENS_A_MESSAGE = 16;
const MAX_TOKENS_OF_TOOLS = 1_024;
/** Of reasoning, which is mostly base64. */
const CHARACTERS_A_TOKEN = 4;
const MAX_BYTES_A_CHARACTER = 3;

/**
 * Tokens that `text` is about, for the rare call whose provider reports no usage (an aborted stream, a bare server).
 *
 * A real tokenizer is not used here on purpose: its tables take 80 MB and a third of a second in every API process, and
 * its time grows with the square of a long run without spaces (measured: 14 s for 60,000 CJK characters), which an open
 * endpoint cannot afford. This is linear, and within about 15 % of o200k on prose, code and CJK.
 */
export function estimateTokens(text: string): number {
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
