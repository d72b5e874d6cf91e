import { MongoBulkWriteError, MongoError, MongoServerError } from "mongodb";
import { AppError, unavailable } from "../lib/errors.ts";

/** Names of the driver's errors that mean: the server did not answer, or not in time. */
const unavailableErrors = new Set([
  "MongoServerSelectionError",
  "MongoNetworkError",
  "MongoNetworkTimeoutError",
  "MongoOperationTimeoutError",
  "MongoNotConnectedError",
  "MongoTopologyClosedError",
  "MongoPoolClosedError",
  "MongoPoolClearedError",
  "MongoWaitQueueTimeoutError",
  "MongoClientClosedError",
  "PoolClearedOnNetworkError",
]);

/** Whether `error` means that the store is unavailable, as against that it refused a command. */
export function isStoreUnavailable(error: unknown): error is MongoError {
  if (!(error instanceof MongoError)) return false;
  // A bulk write wraps what came of the connection and keeps neither its name nor its labels; a server's refusal has a code.
  if (error instanceof MongoBulkWriteError && error.code === undefined && error.err === undefined) return true;
  return unavailableErrors.has(error.name) || error.hasErrorLabel("RetryableWriteError");
}

/** Of these errors the driver has waited as long as it may: another attempt would double the wait of the caller. */
const finalErrors = new Set(["MongoServerSelectionError", "MongoOperationTimeoutError"]);
export const isWaitOver = (error: unknown): boolean => error instanceof MongoError && finalErrors.has(error.name);

/** MongoDB's OutOfDiskSpace. https://www.mongodb.com/docs/manual/reference/error-codes/ */
const OUT_OF_DISK_SPACE = 14_031;
/** NotWritablePrimary, UserWritesBlocked, PrimarySteppedDown. */
const readOnlyCodes = new Set<unknown>([10_107, 371, 189]);
const UNAUTHORIZED = 13;
/** What an account that may only read is refused, as it stands in the message. */
const writeNames = /\b(insert|update|delete|remove|findAndModify)\b/i;
/** Atlas gives one code to all that its plans do not allow. */
const ATLAS_ERROR = 8_000;

/** Whether the store responds but refuses a write, because it is full or read-only. Nothing of the write was stored. */
export function isStoreRejection(error: unknown): boolean {
  return toRejection(error) !== undefined;
}

/** Another worker has written what this one was about to write. The work must start again from the present state. */
export class Overtaken extends AppError {
  constructor(part: string) {
    super("unavailable", `${part}, which another worker writes, is not available right now.`, {
      retryable: true,
      retryAfterMs: 2_000,
    });
  }
}

/** A search index is being built, or the process that serves it is away: everything else of the store answers. */
export class SearchUnavailable extends AppError {
  constructor(cause?: unknown) {
    super("unavailable", "The search index is being built, or does not answer right now.", {
      retryable: true,
      retryAfterMs: 5_000,
      cause,
    });
  }
}

/** What mongod answers while the search process is away, or has not built an index yet: a code, or words. */
const SEARCH_AWAY = 489;
const searchAway =
  /mongot|search process|search index|INITIAL_SYNC|NOT_STARTED|index .*(?:is not|not yet) (?:ready|queryable|initialized)/i;

/** Whether `error` says that the server's search cannot answer for now, while the rest of it does. */
export function isSearchAway(error: unknown): boolean {
  return error instanceof MongoServerError && (error.code === SEARCH_AWAY || searchAway.test(error.message));
}

/**
 * Whether `error` is the store's state and says nothing about the work: the same work succeeds when the store does, or when it
 * begins from what another worker has written.
 */
export function isStoreFailure(error: unknown): error is Error {
  return error instanceof Overtaken || isStoreUnavailable(error) || isStoreRejection(error);
}

/** The error of a store that is full, read-only or unavailable, for the caller; undefined for any other error. */
export function toStoreError(error: unknown): AppError | undefined {
  return toRejection(error) ?? (isStoreUnavailable(error) ? unavailable("The store", error) : undefined);
}

function toRejection(error: unknown): AppError | undefined {
  if (error instanceof AppError)
    return error.code === "storage_full" || error.code === "store_read_only" ? error : undefined;
  if (!(error instanceof MongoError)) return undefined;
  const { code, message } = error;
  const isOfAtlas = code === ATLAS_ERROR;
  if (code === OUT_OF_DISK_SPACE || (isOfAtlas && message.includes("space quota"))) {
    const text = "The store is full. Reading and deleting still work; what was not written is not kept.";
    return new AppError("storage_full", text, { retryable: true, cause: error });
  }
  const isForbidden = (code === UNAUTHORIZED || isOfAtlas) && writeNames.test(message);
  if (!readOnlyCodes.has(code) && !isForbidden) return undefined;
  return new AppError("store_read_only", "The store takes no writes right now.", { retryable: true, cause: error });
}
