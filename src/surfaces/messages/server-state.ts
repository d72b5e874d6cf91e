import { AppError, invalidRequest } from "../../lib/errors.ts";
import type { CountTokensBody, Turn } from "./schemas.ts";

/** What a body may ask Anthropic to keep, or to bring into the conversation. */
type Stateful = {
  thread?: unknown;
  container?: unknown;
  mcp_servers?: unknown;
  compaction?: unknown;
  context_management?: { edits?: unknown } | null;
};

/** The edit of a context that needs no state: it is made here. */
const CLEAR_THINKING = "clear_thinking_20251015";

/**
 * Refuses what only Anthropic's servers hold, since a model that is asked without it would see another conversation.
 * @throws AppError `invalid_request`; for a thread with the `error_code` by which Anthropic's clients send the whole history.
 */
export function refuseServerState(body: object): void {
  const { thread, container, mcp_servers: servers, compaction, context_management: management }: Stateful = { ...body };
  if (isAsked(thread)) {
    const message = "thread: only Anthropic's models hold a conversation; send the whole of it in messages.";
    throw new AppError("invalid_request", message, {
      param: "thread",
      details: { error_code: "thread_unsupported_request" },
    });
  }
  if (isAsked(container))
    throw invalidRequest("container", "container: only Anthropic has containers, and the model cannot reach one.");
  if (Array.isArray(servers) && servers.length > 0)
    throw invalidRequest("mcp_servers", "mcp_servers: only Anthropic calls them; offer their tools in tools.");
  if (isAsked(compaction))
    throw invalidRequest("compaction", "compaction: only Anthropic's models make one; send a shorter history.");
  const edits: readonly unknown[] = Array.isArray(management?.edits) ? management.edits : [];
  const place = edits.findIndex((edit) => Object(edit).type !== CLEAR_THINKING);
  if (place < 0) return;
  const param = `context_management.edits[${place}]`;
  throw invalidRequest(param, `${param}: only Anthropic makes this edit; clear the history that you send.`);
}

const isAsked = (value: unknown) => value !== undefined && value !== null;

type Placed = { turn: Turn; place: number };

/** The turns as their model is to see them: from the last summary on, without the thinking that an edit clears. */
export function visibleTurns({ messages, context_management: management }: CountTokensBody): readonly Placed[] {
  const turns = fromLastSummary(messages.map((turn, place) => ({ turn, place })));
  const edit = management?.edits?.find(({ type }) => type === CLEAR_THINKING);
  return edit === undefined ? turns : clearThinking(turns, edit.keep);
}

/** What was said before a summary is in it. */
function fromLastSummary(turns: readonly Placed[]): readonly Placed[] {
  const first = turns.findLastIndex(({ turn: { content } }) => typeof content !== "string" && content.some(isSummary));
  const { turn, place } = turns[first] ?? {};
  if (place === undefined || turn?.role !== "assistant" || typeof turn.content === "string") return turns;
  const content = turn.content.slice(turn.content.findLastIndex(isSummary));
  return [{ turn: { ...turn, content }, place }, ...turns.slice(first + 1)];
}

const isSummary = (block: { type: string; content?: unknown }) =>
  block.type === "compaction" && typeof block.content === "string";

/** Removes what was thought before the last turns of the assistant: one turn where the edit does not say how many. */
function clearThinking(turns: readonly Placed[], keep: unknown): readonly Placed[] {
  if (keep === "all" || Object(keep).type === "all") return turns;
  const { value } = Object(keep);
  let left = typeof value === "number" ? value : 1;
  const kept: Placed[] = [];
  let hasSpoken = false;
  for (const { turn, place } of turns.toReversed()) {
    // The results of tools do not end the assistant's turn.
    if (turn.role === "user" && !isResults(turn) && hasSpoken) {
      left -= 1;
      hasSpoken = false;
    }
    hasSpoken ||= turn.role === "assistant";
    kept.push({ turn: left > 0 ? turn : withoutThinking(turn), place });
  }
  return kept.reverse();
}

function withoutThinking(turn: Turn): Turn {
  if (turn.role !== "assistant" || typeof turn.content === "string") return turn;
  return { ...turn, content: turn.content.filter(({ type }) => !thinking.has(type)) };
}

const thinking: ReadonlySet<string> = new Set(["thinking", "redacted_thinking"]);
const isResults = ({ content }: Turn) =>
  typeof content !== "string" && content.some(({ type }) => type === "tool_result");
