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
