import type { z } from "zod";
import type { JobKind } from "../store/job-record.ts";

/**
 * Everything producer and consumer must agree on about a queue, in one value.
 * A payload is a strict zod object of ids (and the payload version `v`), under 1 KiB: contents stay in the store.
 */
export type QueueDefinition<Name extends string = string, Payload extends z.ZodType = z.ZodType> = {
  name: Name;
  kind: JobKind;
  payload: Payload;
  /** Jobs that one worker process runs at once, before `WORKER_CONCURRENCY`. */
  concurrency: number;
  /** Whether its jobs compute: then fewer run at once while the processor is busy. */
  isComputing?: boolean;
  /** Tries that may fail, the first one included; only retryable errors are tried again. */
  attempts: number;
  /** Wait before the second try, in ms; doubles at each further one, with jitter. */
  backoffMs: number;
  /** Longest run of one try, in ms; then its signal aborts and the try counts as failed. */
  timeoutMs: number;
  /** Finished BullMQ jobs kept in Redis, for operators to look at; the record is kept longer. Age in seconds. */
  keepCompleted: { age: number; count: number };
  keepFailed: { age: number; count: number };
};

/** Declares a queue; the literal name and the payload's type travel with the value. */
export function defineQueue<const Name extends string, Payload extends z.ZodType>(
  definition: QueueDefinition<Name, Payload>,
): QueueDefinition<Name, Payload> {
  return definition;
}

export type PayloadOf<Q> = Q extends QueueDefinition<string, infer P> ? z.output<P> : never;
