import { randomBytes } from "node:crypto";
import { tryParseJson } from "../../lib/try-parse-json.ts";
import type { ToolCall } from "../messages.ts";
import type { StreamPart } from "./provider.ts";
import { malformed } from "./wire-errors.ts";

/** Tool calls of one answer, at most: more than any request has tools. */
const MAX_CALLS = 1_024;

/** A tool call, or a part of one, as a server sent it: nothing of it is sure. */
export type WireCall = { id?: unknown; name?: unknown; arguments?: unknown };
type Tools = readonly { name: string }[] | undefined;

/** The tool calls of a whole answer: with ids that are unique, and arguments as JSON text. `isCut`: the last one may lack its arguments. */
export function readCalls(calls: readonly WireCall[], { isCut, tools }: { isCut: boolean; tools?: Tools }): ToolCall[] {
  if (calls.length > MAX_CALLS) throw malformed("more tool calls than it was given tools");
  const ids = makeIds();
  return calls.map((call, place) => ({
    id: ids(call.id),
    name: toName(call.name, tools),
    arguments: toArguments(textOf(call.arguments), isCut && place === calls.length - 1),
  }));
}

/** A call whose parts still come: `sent` characters of its arguments have been given on. */
type Open = {
  slot: number;
  index: number;
  wireId: string;
  id: string;
  name: string;
  args: string;
  sent: number;
  hasHead: boolean;
  isEnded: boolean;
};

export type CallReader = ReturnType<typeof makeCallReader>;

/**
 * Reads the parts of tool calls as lenient servers send them, and gives them on one call after the other, numbered from 0,
 * each with an id of its own. A slot is the place that a server names; several calls may share one. Parts of a call that comes
 * in turns with an earlier one wait until that is whole.
 */
export function makeCallReader(tools?: Tools) {
  const ids = makeIds();
  const all: Open[] = [];
  const isTool = (name: string) => tools?.some((tool) => tool.name === name) === true;
  const { queue, sendHead, pump } = makePump(tools, isTool);
  const begin = (slot: number, { id, name, arguments: given }: WireCall): Open => {
    if (all.length >= MAX_CALLS) throw malformed("more tool calls than it was given tools");
    const common = { slot, index: all.length, sent: 0, hasHead: false, isEnded: false };
    const call = { ...common, wireId: toText(id), id: ids(id), name: toText(name), args: textOf(given) };
    all.push(call);
    queue.push(call);
    return call;
  };
  const grow = (call: Open, text: string) => {
    if (text === "") return;
    if (call.isEnded) throw malformed("more of a tool call that had ended");
    call.args = call.args === "{}" && call.sent === 0 && text.startsWith("{") ? text : call.args + text; // some begin each call with an empty object
  };
  const latestAt = (slot: number) => all.findLast((call) => call.slot === slot);
  return {
    /** Takes a part that may begin a call or go on with one. Without a slot it belongs to the call before it. */
    take(slot: number | undefined, part: WireCall, parts: StreamPart[]): void {
      const at = slot ?? all.at(-1)?.slot ?? 0;
      const text = textOf(part.arguments);
      const known = findCall(all, at, part, { isTool, text });
      if (known === undefined) begin(at, part);
      else if (known.isRepeat) return;
      else {
        known.call.name += known.nameDelta;
        grow(known.call, text);
      }
      pump(parts);
    },
    /** Begins a call for sure. */
    begin(slot: number, call: WireCall, parts: StreamPart[]): void {
      const open = begin(slot, call);
      if (queue[0] === open) sendHead(open, parts);
    },
    /** Goes on with the call that has begun last at a slot. */
    add(slot: number, given: unknown, parts: StreamPart[]): void {
      const call = latestAt(slot);
      if (call === undefined) return;
      grow(call, textOf(given));
      pump(parts);
    },
    /** Ends the call of a slot; `whole` is its arguments, where a server says them only at the end. */
    end(slot: number, whole: unknown, parts: StreamPart[]): void {
      const call = latestAt(slot);
      if (call === undefined || call.isEnded) return;
      if (call.args === "") grow(call, textOf(whole));
      call.isEnded = true;
      pump(parts);
    },
    /** Ends all calls: a text follows, or the answer is over. `isCut`: the last one may lack its arguments. */
    endAll(parts: StreamPart[], isCut = false): void {
      if (queue.length > 0) pump(parts, { isCut });
    },
    count: () => all.length,
  };
}

/** Gives on what can be of the calls that are open, which are in `queue`. */
function makePump(tools: Tools, isTool: (name: string) => boolean) {
  const queue: Open[] = [];
  const sendHead = (call: Open, parts: StreamPart[]) => {
    if (call.hasHead) return;
    call.hasHead = true;
    const { index, id, name } = call;
    parts.push({ type: "tool-call-delta", index, id, name: toName(name, tools), argumentsDelta: "" });
  };
  const send = (call: Open, parts: StreamPart[], text: string) => {
    if (text !== "") parts.push({ type: "tool-call-delta", index: call.index, argumentsDelta: text });
  };
  /** Gives on what can be: the first call as it grows, the next one when that has ended. */
  const pump = (parts: StreamPart[], end?: { isCut: boolean }) => {
    for (let call = queue[0]; call !== undefined; call = queue[0]) {
      const isLast = queue.length === 1;
      const isOver = call.isEnded || end !== undefined || (!isLast && isObject(call.args));
      if (isOver || call.args !== "" || isTool(call.name)) sendHead(call, parts);
      if (isLive(call)) {
        send(call, parts, call.args.slice(call.sent));
        call.sent = call.args.length;
      } else if (isOver) send(call, parts, toArguments(call.args, end?.isCut === true && isLast));
      if (!isOver) return;
      call.isEnded = true;
      queue.shift();
    }
  };
  return { queue, sendHead, pump };
}

type Known = { call: Open; nameDelta: string; isRepeat: boolean } | undefined;

/** The call that a part goes on with; undefined when it begins one. */
function findCall(
  all: readonly Open[],
  slot: number,
  { id: givenId, name: givenName }: WireCall,
  { isTool, text }: { isTool(name: string): boolean; text: string },
): Known {
  const [id, name] = [toText(givenId), toText(givenName)];
  const on = (call: Open, nameDelta = "") => ({ call, nameDelta, isRepeat: false });
  const same = id === "" ? undefined : all.find((call) => call.wireId === id && call.slot === slot);
  if (same !== undefined) return { ...on(same), isRepeat: name !== "" && text !== "" && text === same.args };
  const latest = all.findLast((call) => call.slot === slot);
  if (latest === undefined || (id !== "" && name !== "")) return undefined;
  if (name === "") return on(latest);
  if (latest.args.trim() === "") {
    if (name === latest.name) return on(latest);
    return isTool(latest.name) && isTool(name) ? undefined : on(latest, name); // names may come in pieces
  }
  const isNext = isObject(latest.args) && (text !== "" || name !== latest.name);
  return isNext ? undefined : on(latest);
}

/** Arguments that can be given on while they come. Others may be no object, and are looked at when they are whole. */
const isLive = ({ args, sent }: Open) => sent > 0 || (args.trimStart().startsWith("{") && args !== "{}");

const isObject = (text: string) => isRecord(tryParseJson(text));
const isRecord = (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * The arguments of a call as JSON text: `{}` where there are none, and an object that was written into a text. What else is
 * no object stays as it came.
 */
export function toArguments(text: string, isCut = false): string {
  const trimmed = text.trim();
  if (trimmed === "") return isCut ? "" : "{}";
  if (trimmed === "null") return "{}";
  const inner = trimmed.startsWith('"') ? tryParseJson(trimmed) : undefined;
  return typeof inner === "string" && isObject(inner) ? inner : text;
}

/** Arguments as text: Ollama and others send an object. */
function textOf(given: unknown): string {
  if (given === undefined || given === null) return "";
  return typeof given === "string" ? given : JSON.stringify(given);
}

const toText = (given: unknown) => (typeof given === "string" || typeof given === "number" ? String(given) : "");

/** The name of a tool. Some models put OpenAI's namespace before it. */
function toName(given: unknown, tools: Tools): string {
  const name = toText(given).trim();
  const bare = name.replace(/^functions[.:]/, "");
  return tools?.some((tool) => tool.name === name) ? name : bare;
}

/** Gives each call of an answer an id: the server's, unless it has none or it was given before. */
function makeIds(): (given: unknown) => string {
  const taken = new Set<string>();
  return (given) => {
    const own = toText(given).trim();
    const id = own === "" || taken.has(own) ? `call_${randomBytes(12).toString("hex")}` : own;
    taken.add(id);
    return id;
  };
}
