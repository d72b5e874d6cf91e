import type { StepDelta } from "../../gateway/chat/steps.ts";
import { type ContentDelta, makeStringBuilder } from "../../gateway/chat/streamed-response.ts";
import { providerFault } from "../../gateway/resilience/transport-errors.ts";
import { beginCall, makeStepCalls } from "./call-items.ts";
import type { Annotation, OutputItem, ResponseEvent } from "./response-schemas.ts";
import { sealReasoning } from "./sealed-reasoning.ts";
import { makeSearchItems, type SearchDelta } from "./search-items.ts";
import type { CitationDelta, ResponseDelta } from "./steps.ts";
import type { FindTool } from "./tools.ts";

/** Takes the events; undefined when they are not needed: then none is made. */
type Emit = ((event: ResponseEvent) => void) | undefined;
type ItemOf<T extends OutputItem["type"]> = Extract<OutputItem, { type: T }>;
type Delta<T extends ContentDelta["type"]> = Extract<ContentDelta, { type: T }>;

/** Citations of one text, at most. */
const MAX_CITATIONS = 500;

/** An item that still grows: `end` makes it whole. */
type OpenItem = { add(text: string): void; end(isWhole: boolean): void };

/** Whether the reasoning of each provider is shown sealed in its item, and whether it is kept for what follows. */
type Sealing = { isShown: boolean; isKept: boolean };

export type OutputOptions = {
  /** Names an item by its kind and place. */
  toItemId(kind: string, place: number): string;
  sealing: Sealing;
  /** Whether items of searches have what was found. */
  areResultsShown?: boolean;
  emit: Emit;
  findTool?: FindTool;
  /** The place of the first item, where an earlier attempt has begun some. */
  firstItem?: number;
};

/**
 * The output items of a response, made of its deltas, and the events that a stream has for them. Items begin and end in their
 * order: clients gather them by their ends.
 */
export function makeResponseOutput(options: OutputOptions) {
  const { sealing, emit, findTool = toFunction } = options;
  const items: OutputItem[] = [];
  const seals = makeSeals(sealing);
  let text: ReturnType<typeof beginText> | undefined;
  let thought: ReturnType<typeof beginThought> | undefined;
  /** By their places among the calls; they may grow in turns. */
  let calls: (OpenItem | undefined)[] = [];
  const begin = makeBegin(items, options);
  const endSpeech = (isWhole: boolean) => {
    text?.end(isWhole);
    thought?.end();
    text = thought = undefined;
  };
  const endAll = (isWhole: boolean) => {
    endSpeech(isWhole);
    for (const call of calls) call?.end(isWhole);
    calls = calls.map(() => undefined);
    steps.end();
  };
  const steps = makeSteps(begin, options);
  const openText = () => {
    endAll(true);
    return beginText(begin("msg", toMessageItem), emit);
  };
  const openThought = () => {
    endAll(true);
    return beginThought(begin("rs", toThought), emit);
  };
  const openCall = ({ index, id, name = "" }: Delta<"tool-call-delta">) => {
    if (index in calls) throw providerFault("The provider continued a tool call that had ended.");
    endSpeech(true);
    return beginCall({ id: id ?? `call_${index}`, ...findTool(name) }, begin, emit);
  };
  return {
    items,
    take(delta: ResponseDelta): void {
      switch (delta.type) {
        case "text-delta":
          text ??= openText();
          text.add(delta.text);
          break;
        case "reasoning-delta":
          thought ??= openThought();
          thought.add(delta.text);
          break;
        case "reasoning-item":
          thought ??= openThought();
          thought.end(seals.seal(thought.id, delta));
          thought = undefined;
          break;
        case "tool-call-delta": {
          const call = calls[delta.index] ?? openCall(delta);
          calls[delta.index] = call;
          call.add(delta.argumentsDelta);
          break;
        }
        case "citation":
          text ??= openText();
          text.cite(delta);
          break;
        default:
          endSpeech(true);
          steps.take(delta);
      }
    },
    /** Ends what is open; it is incomplete unless the response is whole. */
    end: endAll,
    /** The items with their reasoning, with which the conversation continues. */
    kept: () => items.map(seals.addTo),
  };
}

/** Begins items in the next places. */
function makeBegin(items: OutputItem[], { toItemId, emit, firstItem = 0 }: OutputOptions) {
  return <I extends OutputItem>(kind: string, toItem: (id: string) => I): { item: I; at: At } => {
    const place = firstItem + items.length;
    const item = toItem(toItemId(kind, place));
    const at = { item_id: item.id, output_index: place };
    items.push(item);
    emit?.({ type: "response.output_item.added", output_index: at.output_index, item: { ...item } });
    return { item, at };
  };
}

/** What is done for a response while it is made: the calls of a run, and searches. */
function makeSteps(begin: ReturnType<typeof makeBegin>, { emit, areResultsShown = false }: OutputOptions) {
  const calls = makeStepCalls((toItem) => begin("mcp", toItem), emit);
  const searches = makeSearchItems((toItem) => begin("fs", toItem), { emit, areResultsShown });
  const ask = ({ id, server: server_label, name, arguments: json }: Extract<StepDelta, { type: "step-approval" }>) => {
    const toItem = () => ({ type: "mcp_approval_request" as const, id, server_label, name, arguments: json });
    const { item, at } = begin("mcpr", toItem);
    emit?.({ type: "response.output_item.done", output_index: at.output_index, item });
  };
  return {
    take(delta: StepDelta | SearchDelta): void {
      if (delta.type === "search-call" || delta.type === "search-result") searches.take(delta);
      else if (delta.type === "step-approval") ask(delta);
      else calls.take(delta);
    },
    end() {
      calls.end();
      searches.end();
    },
  };
}

const toFunction: FindTool = (name) => ({ type: "function", name });

const toThought = (id: string): ItemOf<"reasoning"> => ({ type: "reasoning", id, summary: [] });

function makeSeals({ isShown, isKept }: Sealing) {
  /** By the ids of their items. */
  const sealed = new Map<string, string>();
  return {
    /** Seals the reasoning of an item, and returns it where it is shown. */
    seal(itemId: string, reasoning: Delta<"reasoning-item">): string | undefined {
      if (!isShown && !isKept) return undefined;
      const text = sealReasoning(reasoning);
      sealed.set(itemId, text);
      return isShown ? text : undefined;
    },
    addTo(item: OutputItem): OutputItem {
      const text = sealed.get(item.id);
      return item.type === "reasoning" && text !== undefined ? { ...item, encrypted_content: text } : item;
    },
  };
}

const toMessageItem = (id: string): ItemOf<"message"> => {
  return { type: "message", id, status: "in_progress", role: "assistant", content: [] };
};

type At = { item_id: string; output_index: number };
type Begun<T extends OutputItem["type"]> = { item: ItemOf<T>; at: At };

const itemStatus = (isWhole: boolean) => (isWhole ? "completed" : "incomplete");

const toTextPart = (text: string, annotations: Annotation[]) => {
  return { type: "output_text" as const, text, annotations, logprobs: [] };
};

/** The item of a text. Most responses are nothing else, and need none of what makes an output of deltas. */
export function toTextItem(id: string, text: string, isWhole: boolean): ItemOf<"message"> {
  return { ...toMessageItem(id), status: itemStatus(isWhole), content: [toTextPart(text, [])] };
}

function beginText({ item, at }: Begun<"message">, emit: Emit): OpenItem & { cite(citation: CitationDelta): void } {
  const said = makeStringBuilder();
  const place = { ...at, content_index: 0 };
  let length = 0;
  const annotations: Annotation[] = [];
  const toPart = (text: string) => toTextPart(text, [...annotations]);
  emit?.({ type: "response.content_part.added", ...place, part: toPart("") });
  return {
    cite({ of, index = length }) {
      const annotation = { type: "file_citation" as const, ...of, index };
      const isThere = annotations.some((one) => one.chunk_id === of.chunk_id && one.index === index);
      if (isThere || annotations.length >= MAX_CITATIONS) return;
      const annotation_index = annotations.push(annotation) - 1;
      emit?.({ type: "response.output_text.annotation.added", ...place, annotation_index, annotation });
    },
    add(delta) {
      length += delta.length;
      said.add(delta);
      emit?.({ type: "response.output_text.delta", ...place, delta, logprobs: [] });
    },
    end(isWhole) {
      const part = toPart(said.text());
      emit?.({ type: "response.output_text.done", ...place, text: part.text, logprobs: [] });
      emit?.({ type: "response.content_part.done", ...place, part });
      item.content = [part];
      item.status = itemStatus(isWhole);
      emit?.({ type: "response.output_item.done", output_index: at.output_index, item });
    },
  };
}

/** What a model shows of its reasoning is one summary. */
function beginThought({ item, at }: Begun<"reasoning">, emit: Emit) {
  const shown = makeStringBuilder();
  const place = { ...at, summary_index: 0 };
  const toPart = (text: string) => ({ type: "summary_text" as const, text });
  let hasBegun = false;
  return {
    id: item.id,
    add(delta: string): void {
      if (!hasBegun) emit?.({ type: "response.reasoning_summary_part.added", ...place, part: toPart("") });
      hasBegun = true;
      shown.add(delta);
      emit?.({ type: "response.reasoning_summary_text.delta", ...place, delta });
    },
    end(sealed?: string): void {
      if (hasBegun) {
        const part = toPart(shown.text());
        emit?.({ type: "response.reasoning_summary_text.done", ...place, text: part.text });
        emit?.({ type: "response.reasoning_summary_part.done", ...place, part });
        item.summary = [part];
      }
      if (sealed !== undefined) item.encrypted_content = sealed;
      emit?.({ type: "response.output_item.done", output_index: at.output_index, item });
    },
  };
}
