import { defined } from "../../../lib/defined.ts";
import type { AssistantPart, Content, ContentPart, Message } from "../../messages.ts";
import type { CompletionRequest, ResponseFormat, ToolDefinition } from "../provider.ts";

/**
 * The body of `POST /responses`, as JSON text (API reference, "Create a model response"). Nothing is stored there, so the
 * reasoning comes encrypted and goes back with the next request. OpenAI's own server refuses
 * `stop`, `seed`, and a limit below 16 tokens.
 */
export function toWireRequest(request: CompletionRequest, isStreamed: boolean): string {
  const { effort, canReason } = request;
  const summary = canReason ? request.reasoningSummary : undefined;
  const format = request.responseFormat && toTextFormat(request.responseFormat);
  return JSON.stringify({
    model: request.model,
    input: request.messages.flatMap((message) => toItems(message, request.canReason)),
    store: false,
    include: request.canReason && ["reasoning.encrypted_content"], // JSON leaves out what is undefined
    max_output_tokens: request.maxTokens,
    temperature: request.temperature,
    top_p: request.topP,
    stop: request.stop,
    seed: request.seed,
    tools: request.tools?.map(toWireTool),
    tool_choice: toWireToolChoice(request),
    parallel_tool_calls: request.parallelToolCalls,
    reasoning: effort || summary ? { effort, summary } : undefined,
    text: format || request.verbosity ? { format, verbosity: request.verbosity } : undefined,
    metadata: request.metadata,
    user: request.user,
    safety_identifier: request.safetyIdentifier,
    service_tier: request.serviceTier,
    prompt_cache_key: request.promptCacheKey,
    stream: isStreamed || undefined,
  });
}

/** A model that cannot reason refuses the reasoning of another. */
function toItems(message: Message, canReason = false): unknown[] {
  if (message.role === "tool") {
    return [{ type: "function_call_output", call_id: message.toolCallId, output: toWireContent(message.content) }];
  }
  if (message.role !== "assistant") return [{ role: message.role, content: toWireContent(message.content) }];
  if (message.parts !== undefined)
    return message.parts.filter(({ type }) => canReason || type !== "reasoning").map(toAssistantItem);
  const { content, toolCalls = [] } = message;
  const said = content === "" && toolCalls.length > 0 ? [] : [toAssistantItem({ type: "text", text: content })];
  return [...said, ...toolCalls.map((call) => toAssistantItem({ type: "tool-call", ...call }))];
}

function toAssistantItem(part: AssistantPart): unknown {
  if (part.type === "text") return { role: "assistant", content: part.text };
  if (part.type === "reasoning") return part.item;
  return { type: "function_call", call_id: part.id, name: part.name, arguments: part.arguments };
}

function toWireContent(content: Content): unknown {
  return typeof content === "string" ? content : content.map(toInputPart);
}

function toInputPart(part: ContentPart): unknown {
  if (part.type === "text") return { type: "input_text", text: part.text };
  if (part.type === "image") return { type: "input_image", image_url: part.url, detail: part.detail ?? "auto" };
  if (!part.url.startsWith("data:")) return { type: "input_file", file_url: part.url };
  return { type: "input_file", filename: part.name ?? "document.pdf", file_data: part.url };
}

/** Unlike in chat completions, a tool is strict unless it says otherwise, and few schemas are made for that. */
function toWireTool({ name, description, parameters = { type: "object", properties: {} } }: ToolDefinition): unknown {
  return defined({ type: "function", name, description, parameters, strict: false });
}

function toWireToolChoice({ toolChoice: choice, allowedTools }: CompletionRequest): unknown {
  if (allowedTools !== undefined)
    return { type: "allowed_tools", mode: choice, tools: allowedTools.map((name) => ({ type: "function", name })) };
  return typeof choice === "object" ? { type: "function", name: choice.name } : choice;
}

/** The fields that chat completions have under `json_schema` stand beside the type here. */
function toTextFormat(format: ResponseFormat): unknown {
  return format.type === "json_schema" ? { type: format.type, ...format.json_schema } : format;
}
