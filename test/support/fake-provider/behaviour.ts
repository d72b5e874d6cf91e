/** What the fake answers to one request. Without anything it answers a short text with usage, as a healthy server does. */
export type Behaviour = {
  /** The text, already in the pieces in which a stream sends it. */
  pieces?: readonly string[];
  /** The text is a refusal: in the field of its own that OpenAI has for it. */
  isRejection?: boolean;
  reasoning?: string;
  /** Reasoning items of the Responses API, in the place of one with the `reasoning` as its summary. */
  reasoningItems?: readonly (Record<string, unknown> & { type: "reasoning" })[];
  toolCalls?: readonly { id: string; name: string; arguments: string }[];
  finishReason?: string;
  /** `false` leaves it out, as bare servers do; `counted` counts the request's and the answer's own tokens. */
  usage?: FakeUsage | "counted" | false;
  /** Answers this status with an error body in the wire format's shape. */
  status?: number;
  errorCode?: string;
  errorMessage?: string;
  /** Fails after status 200, as the Responses API does. */
  failure?: { code: string; message: string };
  headers?: Record<string, string>;
  /** Answers this text instead, whatever was asked for. */
  rawBody?: string;
  /** Waits so long before the first byte. */
  firstByteMs?: number;
  /** Waits for this before the first byte. */
  until?: Promise<unknown>;
  /** Waits for this within a stream, once `afterPieces` have been sent. */
  hold?: { afterPieces: number; until: Promise<unknown> };
  /** Waits so long between two pieces of a stream. */
  pieceMs?: number;
  /** Embeddings as arrays although base64 was asked for, as servers that do not know base64 do. */
  onlyFloats?: boolean;
  /**
   * Goes wrong: before the head, in a stream and in a chat's JSON after `afterPieces` pieces of the text, in embeddings at
   * their half.
   */
  fault?: Fault;
};

/** `cached_tokens` and `cache_write_tokens` are parts of `prompt_tokens`, `reasoning_tokens` of `completion_tokens`. */
export type FakeUsage = {
  prompt_tokens: number;
  completion_tokens: number;
  cached_tokens?: number;
  cache_write_tokens?: number;
  reasoning_tokens?: number;
};

type Fault =
  /** Closes the connection without an answer. */
  | { type: "reset" }
  /** Breaks the connection off. */
  | { type: "cut"; afterPieces: number }
  /** Ends the body properly, without finish reason and closing event. */
  | { type: "short"; afterPieces: number }
  /** Says nothing more and keeps the connection. */
  | { type: "stall"; afterPieces: number }
  /** Sends an event that is not JSON. */
  | { type: "malformed"; afterPieces: number }
  /** Reports an error inside the stream. */
  | { type: "error-event"; afterPieces: number };

const defaultPieces = ["The lease ", "protects ", "a job."];
const defaultUsage: FakeUsage = { prompt_tokens: 11, completion_tokens: 7 };

export const piecesOf = ({ pieces, toolCalls }: Behaviour) => pieces ?? (toolCalls ? [] : defaultPieces);

/** The usage that an answer tells; undefined when it tells none. */
export function usageOf(behaviour: Behaviour, counted: () => FakeUsage): FakeUsage | undefined {
  if (behaviour.usage === undefined) return defaultUsage;
  if (behaviour.usage === false) return undefined;
  return behaviour.usage === "counted" ? counted() : behaviour.usage;
}

/** Text in the two halves in which it is streamed. */
export function halves(text: string): string[] {
  const middle = Math.ceil(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)].filter((part) => part.length > 0);
}
