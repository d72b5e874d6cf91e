/** What the fake answers to one request. Without anything it answers a short text with usage, as a healthy server does. */
export type Behaviour = {
  /** The text, already in the pieces in which a stream sends it. */
  pieces?: readonly string[];
  reasoning?: string;
  toolCalls?: readonly { id: string; name: string; arguments: string }[];
  finishReason?: "stop" | "length" | "tool_calls" | "content_filter";
  /** `false` leaves it out, as bare servers do. */
  usage?: { prompt_tokens: number; completion_tokens: number } | false;
  /** Answers this status with an error body in OpenAI's shape. */
  status?: number;
  errorCode?: string;
  errorMessage?: string;
  headers?: Record<string, string>;
  /** Answers this text instead, whatever was asked for. */
  rawBody?: string;
  /** Waits so long before the first byte. */
  firstByteMs?: number;
  /** Waits so long between two pieces of a stream. */
  pieceMs?: number;
  /** Embeddings as arrays although base64 was asked for, as servers that do not know base64 do. */
  onlyFloats?: boolean;
  /** Goes wrong: before the head, or in a stream after `afterPieces` pieces. */
  fault?: Fault;
};

type Fault =
  /** Closes the connection without an answer. */
  | { type: "reset" }
  /** Breaks the connection off. */
  | { type: "cut"; afterPieces: number }
  /** Ends the body properly, without finish reason and `[DONE]`. */
  | { type: "short"; afterPieces: number }
  /** Says nothing more and keeps the connection. */
  | { type: "stall"; afterPieces: number }
  /** Sends an event that is not JSON. */
  | { type: "malformed"; afterPieces: number }
  /** Reports an error inside the stream. */
  | { type: "error-event"; afterPieces: number };

export const defaultPieces = ["The lease ", "protects ", "a job."];
export const defaultUsage = { prompt_tokens: 11, completion_tokens: 7 };
