import type { z } from "zod";
import { type ChatRequest, toChatRequest } from "../../gateway/chat/request.ts";
import {
  type AssistantPart,
  type Content,
  type ContentPart,
  type Message,
  toAssistantMessage,
  toContent,
} from "../../gateway/messages.ts";
import type { ChatBody } from "../../gateway/schemas.ts";
import { defined, withoutNulls } from "../../lib/defined.ts";
import { invalidRequest } from "../../lib/errors.ts";
import { readSummary } from "./compaction.ts";
import { type FileSearch, fileSearchName, searchResults } from "./file-search.ts";
import type { InputItem, InputPart, ResponsesBody } from "./request-schemas.ts";
import { openReasoning } from "./sealed-reasoning.ts";
import type { chosenSearch, chosenTool } from "./tool-schemas.ts";
import { allTools, findFileSearch, toFunctions, toOfferedName, toToolCall } from "./tools.ts";

/** The entry of `include` by which a response has its reasoning as text that goes back. */
export const sealedReasoning = "reasoning.encrypted_content";
const included = [sealedReasoning, searchResults];

/** A chat, what of its body is not used, and where in the body the contents of its messages stand. */
type AskedResponse = {
  request: ChatRequest;
  ignored: string[];
  places: string[];
  /** What the response may search. */
  fileSearch: FileSearch | undefined;
};

/** What a chat is about: the items of earlier responses, and those of the request's own input, or its text. */
export type Said = { before: readonly InputItem[]; input: string | readonly InputItem[] };

/**
 * The chat that a body of `POST /v1/responses` asks for. Custom tools become functions with a text; tools and items of tools
 * that run at OpenAI are left out.
 * @throws AppError `invalid_request` for an item that cannot be, and as `toChatRequest`.
 */
export function fromResponsesBody(
  body: ResponsesBody,
  { before, input }: Said = { before: [], input: body.input },
): AskedResponse {
  const { reasoning, text, tool_choice: choice, include, truncation } = body;
  const ignored: string[] = [];
  const all = allTools(body);
  const functions = toFunctions(all, ignored);
  for (const [place, one] of (include ?? []).entries()) if (!included.includes(one)) ignored.push(`include[${place}]`);
  if (truncation === "auto") ignored.push("truncation");
  const settings: ChatBody = {
    ...body,
    messages: [],
    stream: false,
    response_format: toResponseFormat(text?.format),
    reasoning_effort: reasoning?.effort,
    verbosity: text?.verbosity,
    max_tokens: body.max_output_tokens,
    systemPrompt: body.instructions,
    tools: functions.length > 0 ? functions : undefined,
    tool_choice: toToolChoice(choice, functions.length > 0, ignored),
  };
  const own = typeof input === "string" ? [{ role: "user" as const, content: input }] : input;
  const { messages, places } = toMessages([...before, ...own], before.length, ignored);
  if (messages.length === 0) throw invalidRequest("input", "input has no message.");
  const request = { ...toChatRequest(settings), ...withoutNulls({ reasoningSummary: reasoning?.summary }), messages };
  return { request, ignored, places, fileSearch: findFileSearch(all) };
}

/** A tool that was left out cannot be demanded. */
function toToolChoice(
  choice: ResponsesBody["tool_choice"],
  hasTools: boolean,
  ignored: string[],
): ChatBody["tool_choice"] {
  if (typeof choice !== "object" || choice === null) return !hasTools && choice === "auto" ? undefined : choice;
  if (choice.type !== "allowed_tools") return toNamed(choice);
  if (choice.mode === "none") return hasTools ? "none" : undefined;
  const tools = choice.tools.flatMap((tool, place) => {
    if (tool.type !== "other") return [toNamed(tool)];
    ignored.push(`tool_choice.tools[${place}]`);
    return [];
  });
  if (tools.length > 0) return { type: choice.type, allowed_tools: { mode: choice.mode, tools } };
  if (choice.mode === "auto") return "none";
  throw invalidRequest("tool_choice", "tool_choice demands a call of tools that do not run here.");
}

type Chosen = z.output<typeof chosenTool | typeof chosenSearch>;

const toNamed = (chosen: Chosen) => ({
  type: "function" as const,
  function: {
    name: chosen.type === "file_search" ? fileSearchName : toOfferedName(chosen.name, chosen.namespace),
  },
});

function toResponseFormat(format: NonNullable<ResponsesBody["text"]>["format"]): ChatBody["response_format"] {
  if (format?.type !== "json_schema") return format;
  const { type, ...schema } = format;
  return { type, json_schema: schema };
}

/**
 * The conversation of the items, of which the first ones are of earlier responses. What the assistant said, called and thought
 * between two others is one turn of it.
 */
function toMessages(items: readonly InputItem[], earlier: number, ignored: string[]) {
  const messages: Message[] = [];
  const places: string[] = [];
  const add = (place: string, message: Message) => {
    messages.push(message);
    places.push(place);
  };
  const ignore = (place: number) => void (place >= earlier && ignored.push(`input[${place - earlier}]`));
  let turn: AssistantPart[] = [];
  const endTurn = () => {
    if (turn.some(({ type }) => type !== "reasoning")) add("input", toAssistantMessage(turn));
    turn = [];
  };
  for (const [place, item] of items.entries()) {
    const param = place < earlier ? "previous_response_id" : `input[${place - earlier}]`;
    if (item.type === "additional_tools") continue;
    if (item.type === "file_search_call") {
      // The model may search again. What it thought before the search belongs to a call that is not there any more.
      while (turn.at(-1)?.type === "reasoning") turn.pop();
      continue;
    }
    if (item.type === "function_call" || item.type === "custom_tool_call") {
      turn.push(toToolCall(item));
    } else if ("output" in item) {
      endTurn();
      add(`${param}.output`, { role: "tool", content: readContent(item.output), toolCallId: item.call_id });
    } else if (item.type === "reasoning") {
      const reasoning = openReasoning(item.encrypted_content ?? "", `${param}.encrypted_content`);
      if (reasoning) turn.push(reasoning);
      else ignore(place);
    } else if (item.type === "compaction") {
      endTurn();
      add(param, { role: "user", content: readSummary(item, param) });
    } else if (item.type === "mcp_approval_response") {
      endTurn();
      const { approval_request_id: id, approve, reason } = item;
      add(param, { role: "user", content: `${approve ? "Approved" : "Rejected"}: ${id}. ${reason ?? ""}`.trim() });
    } else if (item.type === "item_reference") {
      throw invalidRequest(param, `${param} refers to an item; send the item itself.`);
    } else if (item.type === "other") ignore(place);
    else if (item.role === "assistant") turn.push({ type: "text", text: toText(item.content) });
    else {
      endTurn();
      if (item.role === "user") add(`${param}.content`, { role: "user", content: readContent(item.content) });
      else add(`${param}.content`, { role: "system", content: toText(item.content) });
    }
  }
  endTurn();
  return { messages, places };
}

type SaidPart = Exclude<Extract<InputItem, { role: "assistant" }>["content"], string>[number];

const readContent = (content: string | readonly InputPart[]): Content =>
  typeof content === "string" ? content : toContent(content.map(toPart));

const toText = (content: string | readonly SaidPart[]) =>
  typeof content === "string"
    ? content
    : content.map((part) => (part.type === "refusal" ? part.refusal : part.text)).join("\n");

/** A part with the id of a file is empty here: its contents take its place before a model is asked. */
function toPart(part: InputPart): ContentPart {
  if (part.type === "input_image") {
    // OpenAI's types demand a detail, and "auto" is what a picture without one has.
    const detail = part.detail === "auto" ? undefined : part.detail;
    return { type: "image", ...withoutNulls({ url: part.image_url ?? "", detail }) };
  }
  if (part.type === "input_file")
    return defined({
      type: "file" as const,
      url: part.file_data ?? part.file_url ?? "",
      name: part.filename ?? undefined,
    });
  return { type: "text", text: part.text };
}
