import { createHmac, randomUUID } from "node:crypto";
import type { ReservedJob } from "../../src/jobs/submit.ts";
import { AppError, invalidRequest, isOfPart, unavailable } from "../../src/lib/errors.ts";
import { derivedId, type IdKind, newId, timeOfId } from "../../src/lib/ids.ts";
import { setIdsOfCall } from "../../src/net/call-scope.ts";
import {
  BYTES_BESIDE_TEXT,
  type Claim,
  type IdempotencyRecord,
  type IdempotencyStore,
  type StoredReply,
} from "../../src/store/idempotency-store.ts";
import type { Quotas } from "../../src/tenancy/quotas.ts";
import { canonical, sha256 } from "../canonical-hash.ts";
import { type HandlerInput, isStreamed, type JsonReply, type Reply } from "../route.ts";
import { toAppError, toErrorBody, toStatus } from "./errors.ts";

/** How long a response is kept for repeats, in ms. */
const KEPT_MS = 24 * 60 * 60_000;
/** A running call holds its key by a lease that it renews; after a crash the key is free when the lease expires. In ms. */
const LEASE_MS = 15_000;
const RENEW_MS = 5_000;
/** Larger responses are not kept, in bytes; a document of the store has a limit of 16 MiB. */
const MAX_KEPT_BYTES = 8 << 20;
const MAX_CLAIM_ATTEMPTS = 5;
const sane = /^[\x21-\x7e][\x20-\x7e]{0,254}$/;

/** Statuses of errors that a repeat would meet again: these are kept. After all others the call may be repeated. */
const finalErrorStatuses = new Set([404, 409, 422]);

type IdempotencyDeps = { store: { idempotency: IdempotencyStore }; quotas: Pick<Quotas, "check"> };
type IdempotentCall = {
  key: string;
  /** Whether the response must not be kept; a repeat is refused then. */
  isSecret: boolean;
  handle(input: HandlerInput): Promise<Reply> | Reply;
};

/**
 * Runs a POST at most once for its `Idempotency-Key`, which belongs to the caller's subject in its role. A repeat gets the
 * first response, byte for byte, with `idempotent-replayed: true`, and `ignore` names what the first one ignored. Successes,
 * and the errors 404, 409 and 422, are kept; other errors and streams free the key. A call whose job goes on, or may be there
 * since a part did not answer, keeps its job's id instead: its repeat takes it over, and finds the job. The same holds for
 * what else a call makes by `idOfCall`.
 * @throws AppError `invalid_request`, `idempotency_key_reused` for another call, `idempotency_in_progress` while it runs,
 * `quota_exceeded` where the tenant's responses leave no room for another one; what `reserve` and `inTurn` of the input throw.
 */
export async function respondIdempotently(
  { store, quotas }: IdempotencyDeps,
  input: HandlerInput,
  call: IdempotentCall,
): Promise<Reply> {
  const { key } = call;
  if (!sane.test(key)) {
    throw invalidRequest("Idempotency-Key", "An idempotency key is 1 to 255 printable ASCII characters.");
  }
  const record = makeRecord(input, key);
  const noteBytes = await takeRoom({ store, quotas }, record);
  const claimed = await claim(store.idempotency, record, input);
  if ("reply" in claimed) return toReplay(claimed.reply, input);
  const renewing = setInterval(() => {
    // The next renewal makes up for one that fails; if all fail the lease expires, as it must.
    store.idempotency.renew(claimed, new Date(Date.now() + LEASE_MS)).catch(() => undefined);
  }, RENEW_MS).unref();
  try {
    return await runClaimed(store.idempotency, claimed, input, { ...call, noteBytes });
  } finally {
    clearInterval(renewing);
  }
}

/** Only a first call needs room: a repeat finds what is kept. */
async function takeRoom({ store, quotas }: IdempotencyDeps, { tenantId, _id }: IdempotencyRecord) {
  try {
    return await quotas.check(tenantId, "idempotencyBytes", BYTES_BESIDE_TEXT);
  } catch (error) {
    if ((await store.idempotency.find(tenantId, _id)) === null) throw error;
    return () => undefined;
  }
}

async function runClaimed(
  store: IdempotencyStore,
  claimed: Claimed,
  input: HandlerInput,
  { handle, isSecret, noteBytes }: IdempotentCall & { noteBytes(bytes: number): void },
): Promise<Reply> {
  const ignored: string[] = [];
  const ignore = (name: string) => {
    ignored.push(name);
    input.ignore(name);
  };
  const checkpoint = (reply: JsonReply) => store.keep(claimed, toStored(reply, ignored), false);
  const reservation: ReservedJob = { jobId: claimed.jobId, mayBeThere: claimed.isTakenOver, state: "unused" };
  async function* freeing<T>(events: AsyncIterable<T>) {
    try {
      yield* events;
    } finally {
      if (!hasJob(reservation)) await store.release(claimed).catch(() => undefined); // it has failed: a repeat starts another
    }
  }
  const free = () => (hasJob(reservation) ? store.letGo(claimed) : store.release(claimed));
  let reply: Reply;
  setIdsOfCall(makeIds(reservation));
  try {
    reply = await handle({ ...input, ignore, checkpoint, reservation });
  } catch (thrown) {
    const error = toAppError(thrown);
    const status = toStatus(error);
    if (finalErrorStatuses.has(status)) {
      await store.keep(claimed, toStored({ status, body: toErrorBody(error, input.requestId) }, ignored), true);
    } else {
      const isRefused = reservation.state === "sought" && !isOfPart(error) && error.code !== "internal";
      // Where this fails the lease ends by itself; the client is to get the error of its call.
      await (isRefused ? store.release(claimed) : free()).catch(() => undefined);
    }
    throw error;
  }
  if (isStreamed(reply)) {
    await free();
    return hasJob(reservation) && "events" in reply ? { ...reply, events: freeing(reply.events) } : reply;
  }
  if (isSecret) await store.keep(claimed, undefined, true);
  else {
    const stored = toStored(reply, ignored);
    const bytes = Buffer.byteLength(stored.body ?? "");
    const isKept = bytes <= MAX_KEPT_BYTES;
    if (isKept) noteBytes(bytes);
    await (isKept ? store.keep(claimed, stored, true) : free());
  }
  return reply;
}

/** The ids of what a call makes besides its job: of each kind one after the other, and the same at each attempt. */
function makeIds(reservation: ReservedJob) {
  const { jobId, mayBeThere } = reservation;
  const counts = new Map<IdKind, number>();
  return (kind: IdKind) => {
    if (reservation.state === "unused") reservation.state = "sought";
    const count = counts.get(kind) ?? 0;
    counts.set(kind, count + 1);
    const id = derivedId(kind, { at: new Date(timeOfId(jobId)), from: `${jobId}\n${count}` });
    return { id, mayBeThere };
  };
}

/** Whether another attempt may find the job of this one, or what else it has made. */
const hasJob = ({ state }: ReservedJob) => state === "sought" || state === "accepted";

/** `isTakenOver`: from a process that died before it recorded a response. */
type Claimed = Claim & { jobId: string; isTakenOver: boolean };

/** Takes the key for this call, or finds the response to the first one. */
async function claim(
  store: IdempotencyStore,
  record: IdempotencyRecord,
  input: HandlerInput,
): Promise<Claimed | { reply: StoredReply }> {
  for (let attempt = 0; attempt < MAX_CLAIM_ATTEMPTS; attempt += 1) {
    if (await store.insert(record)) return { ...record, isTakenOver: false };
    const existing = await store.find(record.tenantId, record._id);
    if (existing === null) continue; // it was released just now
    const now = new Date();
    if (existing.expiresAt <= now) {
      if (await store.takeOver(record, existing.token)) return { ...record, isTakenOver: false };
      continue;
    }
    if (existing.fingerprint !== record.fingerprint) {
      throw new AppError("idempotency_key_reused", "This idempotency key was used for another request.");
    }
    const { isDone, jobId } = existing;
    if (!isDone && existing.leaseUntil > now) break;
    const reply = await readReply(store, existing, input);
    if (reply) return { reply }; // without `isDone` its process died after the work was accepted
    if (isDone)
      throw new AppError("idempotency_key_reused", "The first response held a secret, which is shown only once.");
    const next = { ...record, jobId };
    if (await store.takeOver(next, existing.token)) return { ...next, isTakenOver: true };
  }
  throw new AppError("idempotency_in_progress", "The first request with this idempotency key is still running.", {
    retryable: true,
  });
}

/** What the first call was answered. A large text is read in turn, with memory for it set aside. */
async function readReply(
  store: IdempotencyStore,
  { reply, largeBytes, ...call }: IdempotencyRecord,
  { reserve, inTurn }: HandlerInput,
): Promise<StoredReply | undefined> {
  if (reply === undefined || largeBytes === undefined) return reply;
  reserve(largeBytes);
  const body = await inTurn(() => store.text(call));
  if (body === undefined) throw unavailable("The first response");
  return { ...reply, body };
}

function makeRecord(input: HandlerInput, key: string): IdempotencyRecord {
  const { tenantId, role, subject, collections = [] } = input.caller;
  const now = Date.now();
  return {
    // Some roles are checked in handlers, which a repeat does not reach. The API key may be rotated between two attempts.
    _id: `${tenantId}:${sha256(canonical([role, subject, key, ...collections]))}`,
    tenantId,
    fingerprint: fingerprint(key, `POST ${input.path} ${canonical(input.query)} ${canonical(input.body)}`),
    token: randomUUID(),
    leaseUntil: new Date(now + LEASE_MS),
    isDone: false,
    jobId: newId("job"),
    expiresAt: new Date(now + KEPT_MS),
  };
}

/** Keyed by the client's own key, which is not kept: a short secret in a body cannot be guessed from it. */
function fingerprint(key: string, call: string): string {
  return createHmac("sha256", key).update(call).digest("hex");
}

function toStored({ status, headers = {}, body, text: made }: JsonReply, ignored: readonly string[]): StoredReply {
  const text = made ?? (typeof body === "string" ? body : JSON.stringify(body)); // a string is sent as it is
  return { status, headers, body: body === undefined ? null : text, ignored };
}

function toReplay({ status, headers, body, ignored }: StoredReply, { ignore }: HandlerInput): JsonReply {
  for (const name of ignored) ignore(name);
  const replayed = { ...headers, "idempotent-replayed": "true" };
  if (body === null) return { status, headers: replayed };
  return { status, headers: { ...replayed, "content-type": "application/json; charset=utf-8" }, body };
}
