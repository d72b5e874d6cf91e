import type { ChatOutcome } from "./outcome.ts";
import type { StreamEvent } from "./stream.ts";
import type { ContentDelta } from "./streamed-response.ts";

/** What a run that answers in the place of a model reports of its steps: a tool call that it makes itself, and how that ended. */
export type StepDelta =
  | (StepCall & { type: "step-call"; approvalId?: string })
  | { type: "step-result"; id: string; output: string; isError: boolean }
  /** A call that a person has to approve before it is made; `id` is the approval's. */
  | (StepCall & { type: "step-approval" });

/** `server`: whose tool it is. */
type StepCall = { id: string; server: string; name: string; arguments: string };

/** A part of an answer, of a model or of a run. */
export type ChatDelta = ContentDelta | StepDelta;
/** What the stream of an answer has, of a model or of a run. */
export type ChatEvent = StreamEvent | StepDelta;
/** The outcome of a chat. `steps` is what a run did before it answered, which its `reasoning` has as a text. */
export type AnsweredChat = ChatOutcome & { steps?: readonly ChatDelta[] };

export const isStep = (event: ChatEvent): event is StepDelta =>
  event.type === "step-call" || event.type === "step-result" || event.type === "step-approval";

/** Whether an event has nothing to show where a surface has no form for steps: the result of one that went well. */
export const isSilent = (event: ChatEvent) => event.type === "step-result" && !event.isError;

/** A step where a surface has no form for it: a part of the reasoning, without what tools returned. */
export function toReasoningText(step: ChatDelta): string {
  if (step.type === "reasoning-delta") return step.text;
  if (step.type === "step-call") return `[${step.name}] ${step.arguments}\n`;
  return step.type === "step-result" && step.isError ? `[failed] ${step.output}\n` : "";
}
