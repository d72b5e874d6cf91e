import type { StepDelta } from "../../gateway/chat/steps.ts";
import { makeStringBuilder } from "../../gateway/chat/streamed-response.ts";
import type { OutputItem, ResponseEvent } from "./response-schemas.ts";
import { type ToolPlace, toCustomInput } from "./tools.ts";

/** Takes the events; undefined when they are not needed: then none is made. */
type Emit = ((event: ResponseEvent) => void) | undefined;
type At = { item_id: string; output_index: number };
type Begin = <I extends OutputItem>(kind: string, toItem: (id: string) => I) => { item: I; at: At };
type Begun<T extends OutputItem["type"]> = { item: Extract<OutputItem, { type: T }>; at: At };

const toStatus = (isWhole: boolean) => (isWhole ? "completed" : "incomplete");

/** The item of a call, for the tool of the request that the model calls. */
export function beginCall({ id, type, ...tool }: ToolPlace & { id: string }, begin: Begin, emit: Emit) {
  const called = { status: "in_progress" as const, call_id: id, ...tool };
  if (type === "function")
    return beginFunctionCall(
      begin("fc", (itemId) => ({ type: "function_call", id: itemId, ...called, arguments: "" })),
      emit,
    );
  return beginCustomCall(
    begin("ctc", (itemId) => ({ type: "custom_tool_call", id: itemId, ...called, input: "" })),
    emit,
  );
}

function beginFunctionCall({ item, at }: Begun<"function_call">, emit: Emit) {
  return {
    add(delta: string): void {
      item.arguments += delta;
      if (delta !== "") emit?.({ type: "response.function_call_arguments.delta", ...at, delta });
    },
    end(isWhole: boolean): void {
      const { name, arguments: json } = item;
      emit?.({ type: "response.function_call_arguments.done", ...at, name, arguments: json });
      item.status = toStatus(isWhole);
      emit?.({ type: "response.output_item.done", output_index: at.output_index, item });
    },
  };
}

/** The input of a custom tool is a text inside of JSON: its events come when that is whole. */
function beginCustomCall({ item, at }: Begun<"custom_tool_call">, emit: Emit) {
  const json = makeStringBuilder();
  return {
    add: json.add,
    end(isWhole: boolean): void {
      item.input = toCustomInput(json.text());
      if (item.input !== "") emit?.({ type: "response.custom_tool_call_input.delta", ...at, delta: item.input });
      emit?.({ type: "response.custom_tool_call_input.done", ...at, input: item.input });
      item.status = toStatus(isWhole);
      emit?.({ type: "response.output_item.done", output_index: at.output_index, item });
    },
  };
}

type Result = Pick<Extract<StepDelta, { type: "step-result" }>, "output" | "isError">;
type OpenCall = Begun<"mcp_call"> & { id: string; result?: Result };

/** A call whose run ended before it did. */
const unfinished: Result = { output: "The run ended before this call did.", isError: true };

/**
 * The tool calls that a run makes itself, in the form that OpenAI has for tools which no client calls: items of the type
 * `mcp_call`. Calls of one answer are made at once; their items end in the order in which they began.
 */
export function makeStepCalls(
  begin: (toItem: (id: string) => Begun<"mcp_call">["item"]) => Begun<"mcp_call">,
  emit: Emit,
) {
  const open: OpenCall[] = [];
  const end = ({ item, at, result = unfinished }: OpenCall) => {
    const { output, isError } = result;
    Object.assign(item, isError ? { status: "failed", error: output } : { status: "completed", output });
    emit?.({ type: isError ? "response.mcp_call.failed" : "response.mcp_call.completed", ...at });
    emit?.({ type: "response.output_item.done", output_index: at.output_index, item });
  };
  return {
    take(step: Exclude<StepDelta, { type: "step-approval" }>): void {
      if (step.type === "step-call") {
        const { id, server, name, arguments: json, approvalId = null } = step;
        const head = { type: "mcp_call", server_label: server, name, approval_request_id: approvalId } as const;
        const begun = begin((itemId) => {
          return { ...head, id: itemId, status: "in_progress", arguments: "", output: null, error: null };
        });
        const { item, at } = begun;
        emit?.({ type: "response.mcp_call.in_progress", ...at });
        emit?.({ type: "response.mcp_call_arguments.delta", ...at, delta: json });
        emit?.({ type: "response.mcp_call_arguments.done", ...at, arguments: json });
        item.arguments = json;
        open.push({ ...begun, id });
        return;
      }
      const call = open.find(({ id }) => id === step.id);
      if (call) call.result = step;
      while (open[0]?.result) end(open.shift() as OpenCall); // it is there, by the line's condition
    },
    /** Ends the calls that are still open. */
    end(): void {
      for (const call of open.splice(0)) end(call);
    },
  };
}
