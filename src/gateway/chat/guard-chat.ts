import type { GuardedText } from "../../guards/call-guard.ts";
import { mapAllAtOnce, mapAllTexts, mapId, mapTexts } from "../../guards/map-texts.ts";
import type { StreamGuard } from "../../guards/stream-guard.ts";
import type { PolicyGuard } from "../../tenancy/guard-policies.ts";
import type { AssistantPart, Content, Message, ReasoningPart, ToolCall } from "../messages.ts";
import type { CompletionResult, StreamPart } from "../providers/provider.ts";
import type { ChatRequest } from "./request.ts";

export type Visit = (text: GuardedText) => string;

/**
 * The request as it may go to a model. Instructions, messages and settings are of the place `input`, what tools have given of
 * `toolOutput`, and what they were called with of `toolInput`. @throws AppError `compliance_blocked`, `unavailable`.
 */
export async function guardRequest(guard: PolicyGuard, request: ChatRequest): Promise<ChatRequest> {
  if (!guard.takesMedia) refuseMedia(guard, request.messages);
  const { logprobs: _l, topLogprobs: _t, ...plain } = request;
  // Parts of a value are tokens of their own, whose names a mark does not hide.
  const taken = guard.has("output", "mask", "block") ? plain : request;
  const guarded = await mapAllTexts((visit) => mapRequest(taken, visit), guard.take);
  guard.seal();
  return guarded;
}

function mapRequest(request: ChatRequest, visit: Visit): ChatRequest {
  const { messages, model, options, effort, serviceTier, toolChoice, ...rest } = request;
  return {
    ...request,
    ...mapTexts(rest, { place: "input", field: "" }, visit),
    messages: messages.map((message, at) => mapMessage(message, `messages[${at}]`, visit)),
  };
}

function mapMessage(message: Message, field: string, visit: Visit): Message {
  if (message.role === "tool") {
    const toolCallId = mapId(message.toolCallId, { place: "toolOutput", field: `${field}.tool_call_id` }, visit);
    return { ...message, toolCallId, content: mapContent(message.content, "toolOutput", field, visit) };
  }
  if (message.role === "user") return { ...message, content: mapContent(message.content, "input", field, visit) };
  const content = visit({ place: "input", field: `${field}.content`, text: message.content });
  if (message.role === "system") return { ...message, content };
  const { toolCalls, parts } = message;
  return {
    ...message,
    content,
    ...(toolCalls && { toolCalls: toolCalls.map((call) => mapGivenCall(call, `${field}.tool_calls`, visit)) }),
    ...(parts && { parts: parts.flatMap((part) => mapGivenPart(part, field, visit)) }),
  };
}

function mapContent(content: Content, place: GuardedText["place"], field: string, visit: Visit): Content {
  if (typeof content === "string") return visit({ place, field: `${field}.content`, text: content });
  return content.map((part, at) => mapTexts(part, { place, field: `${field}.content[${at}]` }, visit));
}

/** A tool call with its arguments mapped. */
export const mapCall = <C extends ToolCall>(call: C, field: string, visit: Visit): C => ({
  ...call,
  arguments: visit({ place: "toolInput", field, text: call.arguments, isJson: true }),
});

/** The same of a call that a caller says was made, whose id and name are the caller's words, too. */
const mapGivenCall = <C extends ToolCall>(call: C, field: string, visit: Visit): C => ({
  ...mapCall(call, field, visit),
  id: mapId(call.id, { place: "toolInput", field: `${field}.id` }, visit),
  name: mapId(call.name, { place: "toolInput", field: `${field}.name` }, visit),
});

/** A part of a turn as a caller says it was. Reasoning that would be changed is left out, since its provider has signed it. */
function mapGivenPart(part: AssistantPart, field: string, visit: Visit): AssistantPart[] {
  if (part.type === "tool-call") return [mapGivenCall(part, field, visit)];
  if (part.type === "text") return [{ ...part, text: visit({ place: "input", field, text: part.text }) }];
  const item = mapTexts(part.item, { place: "input", field, isWire: true }, visit);
  return JSON.stringify(item) === JSON.stringify(part.item) ? [part] : [];
}

/** A part of a turn with its texts mapped; reasoning stays as its provider made it. */
export function mapPart<R extends { type: "reasoning" }>(
  part: Exclude<AssistantPart, ReasoningPart> | R,
  place: GuardedText["place"],
  field: string,
  visit: Visit,
): Exclude<AssistantPart, ReasoningPart> | R {
  if (part.type === "text") return { ...part, text: visit({ place, field, text: part.text }) };
  return part.type === "tool-call" ? mapCall(part, field, visit) : part;
}

function refuseMedia(guard: PolicyGuard, messages: readonly Message[]): void {
  for (const [at, { role, content }] of messages.entries()) {
    if (typeof content === "string" || !guard.has(role === "tool" ? "toolOutput" : "input", "block")) continue;
    const part = content.findIndex(({ type }) => type !== "text");
    if (part < 0) continue;
    guard.refuseMedia(`messages[${at}].content[${part}]`);
  }
}

type Answer = Pick<CompletionResult, "text" | "reasoning" | "toolCalls" | "parts" | "logprobs">;

/** An answer as it may be given. @throws AppError `compliance_blocked`, `unavailable`. */
export async function guardAnswer<A extends Answer>(guard: PolicyGuard, answer: A): Promise<A> {
  if (!guard.isOn("output", "toolInput")) return answer;
  const map = (visit: Visit): A => ({
    ...answer,
    text: visit({ place: "output", field: "text", text: answer.text }),
    ...(answer.reasoning === undefined
      ? {}
      : { reasoning: visit({ place: "output", field: "reasoning", text: answer.reasoning }) }),
    toolCalls: answer.toolCalls.map((call) => mapCall(call, "toolCalls", visit)),
  });
  const guarded = await mapAllTexts(map, guard.take);
  const { parts } = answer;
  if (parts === undefined) return guarded;
  // The parts say again what the answer says as a whole: a value is counted once.
  const again = (texts: GuardedText[]) => guard.take(texts, { isCounted: false });
  const isSaid = answer.reasoning !== undefined;
  const own = parts.filter((part) => part.type !== "reasoning" || isClear(guard, part.item, isSaid));
  return {
    ...guarded,
    parts: await mapAllTexts((visit) => own.map((part) => mapPart(part, "output", "parts", visit)), again),
  };
}

/**
 * Whether nothing in an item of reasoning would be changed; one that would is left out, since its provider has signed it. `isSaid`: its
 * text was read before, so that its values are counted.
 */
function isClear(guard: PolicyGuard, item: Record<string, unknown>, isSaid: boolean): boolean {
  const { id: _, ...said } = item;
  const take = (texts: GuardedText[]) => guard.takeAtOnce(texts, { isCounted: !isSaid });
  const guarded = mapAllAtOnce(
    (visit) => mapTexts(said, { place: "output", field: "reasoning", isWire: true }, visit),
    take,
  );
  return JSON.stringify(guarded) === JSON.stringify(said);
}

/** What reads a text in parts: it may hold some of it back. */
type Lane = Pick<StreamGuard, "push" | "end">;
/** A part of a stream that says some text of an answer. */
type Delta = Extract<StreamPart, { type: "text-delta" | "reasoning-delta" | "tool-call-delta" }>;

export const isDelta = (part: { type: string }): part is Delta =>
  part.type === "text-delta" || part.type === "reasoning-delta" || part.type === "tool-call-delta";

/**
 * Reads text, reasoning and the arguments of each call of a stream apart, each by a lane of its own. What one of them holds back
 * goes on when another one begins.
 */
export function makeLanes<L extends Lane>(open: (type: Delta["type"]) => L) {
  const lanes = new Map<string, { lane: L; toPart(text: string): Delta }>();
  const flush = (but?: string): Delta[] => {
    const rests: Delta[] = [];
    for (const [name, { lane, toPart }] of lanes) {
      const rest = name === but ? "" : lane.end();
      if (rest !== "") rests.push(toPart(rest));
    }
    return rests;
  };
  const laneOf = (part: Delta, name: string) => {
    const known = lanes.get(name);
    if (known) return known;
    const toPart = (text: string): Delta =>
      part.type === "tool-call-delta"
        ? { type: part.type, index: part.index, argumentsDelta: text }
        : { type: part.type, text };
    const made = { lane: open(part.type), toPart };
    lanes.set(name, made);
    return made;
  };
  return {
    /** What goes on of a part, after what the other lanes held back. */
    take(part: Delta): Delta[] {
      const isCall = part.type === "tool-call-delta";
      const name = isCall ? `call ${part.index}` : part.type;
      const { lane, toPart } = laneOf(part, name);
      const said = lane.push(textOf(part));
      const given = flush(name);
      if (isCall && (part.id !== undefined || part.name !== undefined)) given.push({ ...part, argumentsDelta: said });
      else if (said !== "") given.push(toPart(said));
      return given;
    },
    /** What is held back. */
    flush: () => flush(),
    lanes: () => lanes.values().map(({ lane }) => lane),
  };
}

/** Characters of a part of a stream that are read at a time. */
const MAX_PIECE = 8_000;

const textOf = (part: Delta) => (part.type === "tool-call-delta" ? part.argumentsDelta : part.text);
const lengthOf = (part: StreamPart) => (isDelta(part) ? textOf(part).length : 0);

/** A long part as several ones. */
function inPieces(part: StreamPart): StreamPart[] {
  if (!isDelta(part) || lengthOf(part) <= MAX_PIECE) return [part];
  const text = textOf(part);
  const pieces: StreamPart[] = [];
  for (let at = 0; at < text.length; at += MAX_PIECE) {
    const piece = text.slice(at, at + MAX_PIECE);
    if (part.type !== "tool-call-delta") pieces.push({ type: part.type, text: piece });
    else if (at === 0) pieces.push({ ...part, argumentsDelta: piece });
    else pieces.push({ type: part.type, index: part.index, argumentsDelta: piece });
  }
  return pieces;
}

/** Guards the parts of a stream as they come. Its result throws as `guardAnswer`. */
export function makePartsGuard(guard: PolicyGuard) {
  const { take, flush, lanes } = makeLanes((type) => {
    if (type === "tool-call-delta") return guard.stream("toolInput", "toolCalls", true);
    return guard.stream("output", type === "text-delta" ? "text" : "reasoning");
  });
  let isSaid = false;
  const guardOne = (part: StreamPart): StreamPart[] => {
    isSaid ||= part.type === "reasoning-delta";
    if (isDelta(part)) return take(part);
    if (part.type === "reasoning-item") return [...flush(), ...(isClear(guard, part.item, isSaid) ? [part] : [])];
    return part.type === "end" ? [...flush(), part] : [part];
  };
  const guardParts = async (parts: readonly StreamPart[]): Promise<StreamPart[]> => {
    const guarded: StreamPart[] = [];
    for (const part of parts.flatMap(inPieces))
      guarded.push(...(lengthOf(part) < MAX_PIECE ? guardOne(part) : await guard.inTurn(() => guardOne(part))));
    return guarded;
  };
  return Object.assign(guardParts, {
    /** Whether anything is held back. */
    isHolding: () => lanes().some((lane) => lane.isHolding()),
  });
}
