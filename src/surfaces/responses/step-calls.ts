import type { StepDelta } from "../../gateway/chat/steps.ts";
import type { OutputItem, ResponseEvent } from "./response-schemas.ts";

/** Takes the events; undefined when they are not needed: then none is made. */
type Emit = ((event: ResponseEvent) => void) | undefined;
type CallItem = Extract<OutputItem, { type: "mcp_call" }>;
type Begun = { item: CallItem; at: { item_id: string; output_index: number } };
type Result = Pick<Extract<StepDelta, { type: "step-result" }>, "output" | "isError">;
type OpenCall = Begun & { id: string; result?: Result };

/** A call whose run ended before it did. */
const unfinished: Result = { output: "The run ended before this call did.", isError: true };

/**
 * The tool calls that a run makes itself, in the form that OpenAI has for tools which no client calls: items of the type
 * `mcp_call`. Calls of one answer are made at once; their items end in the order in which they began.
 */
export function makeStepCalls(begin: (toItem: (id: string) => CallItem) => Begun, emit: Emit) {
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
