import { LRUCache } from "lru-cache";
import { AppError } from "../lib/errors.ts";
import { jittered } from "../lib/jitter.ts";
import type { Logger } from "../observe/logger.ts";
import type { TenantOwned } from "../store/collection.ts";
import type { Webhooks } from "./webhooks.ts";

/** Messages under way at a time in a process, and of one owner: slow receivers of one leave places for the others. */
const PLACES = 64;
const PLACES_OF_OWNER = 8;
/** The longest wait for a receiver, in ms. */
const TIMEOUT_MS = 10_000;
/** A message is given up at this age, in ms. */
const MAX_AGE_MS = 86_400_000;
/** A message without an outcome after this time is lost, in ms; longer than a webhook may take. */
const LEASE_MS = 60_000;
/** Attempts at a message, and the wait after the first, in ms: it triples with each, less up to half at random; 90 minutes in all. */
const MAX_ATTEMPTS = 8;
const BACKOFF_MS = 5_000;

/** A message that is a record. `owner`: the tenant whose turns it takes; absent: its own. */
export type Message = TenantOwned & { url: string; owner?: string; attempts?: number; nextAt?: Date };

type Next = { nextAt: Date; attempts?: number };

/** How one kind of messages is sent; `M` is its record. */
type Sending<M extends Message> = {
  message: M;
  /** From when its age counts. */
  since: Date;
  body(): Promise<unknown>;
  /** Puts off exactly this state of the record; false when another process has it by now. `failed`: the attempt that was made. */
  putOff(message: M, next: Next, failed?: unknown): Promise<boolean>;
  delivered(status: number, attempts: number): Promise<unknown>;
  givenUp(error: unknown, attempts: number): Promise<unknown>;
};

type SendDeps = { webhooks: Pick<Webhooks, "deliver">; pauses: Pauses; logger: Logger };

/** Messages under way: a bounded number, and of each owner. One that finds no place stays due. */
export function makeOutbox() {
  const running = new Map<Promise<void>, string>();
  const count = (owner: string) => [...running.values()].filter((one) => one === owner).length;
  const isFull = () => running.size >= PLACES;
  return {
    isFull,
    busyOwners: () => [...new Set(running.values())].filter((owner) => count(owner) >= PLACES_OF_OWNER),
    begin({ owner: named, tenantId }: Message, deliver: () => Promise<void>): void {
      const owner = named ?? tenantId;
      if (isFull() || count(owner) >= PLACES_OF_OWNER) return;
      const delivery = deliver().finally(() => running.delete(delivery));
      running.set(delivery, owner);
    },
    settled: async () => void (await Promise.allSettled(running.keys())),
  };
}

/** Sends a message once. The record is rescheduled first, so that other sweeps skip it meanwhile. It never rejects. */
export async function sendMessage<M extends Message>(deps: SendDeps, sending: Sending<M>): Promise<void> {
  const { message } = sending;
  const until = deps.pauses.until(receiverOf(message));
  try {
    if (until !== undefined) return void (await sending.putOff(message, { nextAt: new Date(until) }));
    await attempt(deps, sending);
  } catch (error) {
    deps.logger.warn({ err: error, id: message._id }, "a message could not be handled; a later sweep will");
  }
}

async function attempt<M extends Message>({ webhooks, pauses }: SendDeps, sending: Sending<M>): Promise<void> {
  const { message } = sending;
  const { tenantId, _id: id, url } = message;
  const receiver = receiverOf(message);
  const attempts = (message.attempts ?? 0) + 1;
  const leased = { nextAt: new Date(Date.now() + LEASE_MS), attempts };
  if (!(await sending.putOff(message, leased))) return;
  let answer: { status: number };
  try {
    const { signal } = new AbortController(); // a webhook has its own time-out
    const about = { id, url, method: "POST", body: await sending.body(), signal, timeoutMs: TIMEOUT_MS };
    answer = await webhooks.deliver(tenantId, about);
  } catch (error) {
    const { code, retryable = true, retryAfterMs = 0 } = error instanceof AppError ? error : {};
    if (code === "source_unreachable") pauses.failed(receiver);
    const isOld = Date.now() - sending.since.getTime() > MAX_AGE_MS;
    if (!retryable || attempts >= MAX_ATTEMPTS || isOld) return void (await sending.givenUp(error, attempts));
    const backoffMs = jittered(BACKOFF_MS * 3 ** (attempts - 1));
    const nextAt = new Date(Date.now() + Math.max(backoffMs, retryAfterMs));
    await sending.putOff({ ...message, ...leased }, { nextAt }, error);
    return;
  }
  pauses.succeeded(receiver);
  await sending.delivered(answer.status, attempts); // if it cannot be noted, the message is sent again, and has not failed
}

/** Whom a pause is for: the origin, as one owner knows it, so that nobody pauses the messages of another. */
const receiverOf = ({ owner, tenantId, url }: Message) => `${owner ?? tenantId}\n${new URL(url).origin}`;

/** Messages in a row that got no answer until their receiver is left alone, and for how long, in ms: twice as long each time. */
const FAILURES_TO_PAUSE = 5;
const FIRST_PAUSE_MS = 30_000;
const MAX_PAUSE_MS = 600_000;
const MAX_RECEIVERS = 10_000;

export type Pauses = ReturnType<typeof makePauses>;

/** Which receivers are left alone for a while, since nothing there answers. After a pause one failure is enough for the next. */
export function makePauses(now: () => number = Date.now) {
  const receivers = new LRUCache<string, { failures: number; until: number }>({ max: MAX_RECEIVERS });
  return {
    /** When a receiver may be called again, in ms since the epoch; undefined: now. */
    until(receiver: string): number | undefined {
      const until = receivers.get(receiver)?.until ?? 0;
      return until > now() ? until : undefined;
    },
    failed(receiver: string): void {
      const failures = (receivers.get(receiver)?.failures ?? 0) + 1;
      const pauses = failures - FAILURES_TO_PAUSE;
      const pauseMs = pauses < 0 ? 0 : Math.min(FIRST_PAUSE_MS * 2 ** pauses, MAX_PAUSE_MS);
      receivers.set(receiver, { failures, until: pauseMs === 0 ? 0 : now() + jittered(pauseMs) });
    },
    succeeded: (receiver: string) => void receivers.delete(receiver),
  };
}
