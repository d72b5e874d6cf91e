import type { AppErrorOptions, ErrorCode } from "../errors.ts";

/** What the host sends to a child: one request at a time. */
export type ChildRequest<Request> = { id: number; request: Request };

/** What a child answers to a request: parts of the answer, then its end; or an error at any time. */
export type ChildMessage<Part> =
  | { id: number; kind: "part"; part: Part }
  | { id: number; kind: "end" }
  | { id: number; kind: "error"; error: ChildError };

/** An AppError, as it passes between processes. Its cause is text, for the log. */
export type ChildError = {
  code: ErrorCode;
  message: string;
  options: Omit<AppErrorOptions, "cause"> & { cause: string };
};

/** The pipe of a child's messages. Requests come by the channel that `fork` makes. */
export const MESSAGES_FD = 4;

/** Bounds on the memory of a child, in MB: of V8's heap, and of the process as a whole. */
export type MemoryBounds = { heapMb: number; rssMb: number };
