/** MongoDB's error codes that this server can answer, by the name that goes with each. */
export const errorCodes = {
  InternalError: 1,
  BadValue: 2,
  FailedToParse: 9,
  Unauthorized: 13,
  TypeMismatch: 14,
  Overflow: 15,
  InvalidLength: 16,
  AuthenticationFailed: 18,
  EmptyFieldName: 56,
  InvalidBSON: 22,
  NamespaceNotFound: 26,
  IndexNotFound: 27,
  PathNotViable: 28,
  ConflictingUpdateOperators: 40,
  CursorNotFound: 43,
  DollarPrefixedFieldName: 52,
  InvalidIdField: 53,
  CommandNotFound: 59,
  ImmutableField: 66,
  CannotCreateIndex: 67,
  IndexAlreadyExists: 68,
  InvalidNamespace: 73,
  IndexOptionsConflict: 85,
  IndexKeySpecsConflict: 86,
  OperationFailed: 96,
  CannotIndexParallelArrays: 171,
  InvalidPipelineOperator: 168,
  QueryPlanKilled: 175,
  InvalidIndexSpecificationOption: 197,
  NotImplemented: 238,
  UserWritesBlocked: 371,
  UnknownError: 8,
  BSONObjectTooLarge: 10334,
  DuplicateKey: 11000,
  OutOfDiskSpace: 14031,
} as const;
export type ErrorName = keyof typeof errorCodes;

/** An error that is reported to the client in MongoDB's own form: `code`, `codeName`, `errmsg` and fields of its own. */
export class CommandError extends Error {
  readonly code: number;
  readonly codeName: string;
  /** Further fields of the answer, as `keyPattern` and `keyValue` of a duplicate key. */
  readonly details: Record<string, unknown>;

  constructor(code: number, codeName: string, message: string, details: Record<string, unknown> = {}) {
    super(message);
    this.name = "CommandError";
    this.code = code;
    this.codeName = codeName;
    this.details = details;
  }
}

/** The error of that name, with MongoDB's number for it. */
export function commandError(name: ErrorName, message: string, details?: Record<string, unknown>): CommandError {
  return new CommandError(errorCodes[name], name, message, details);
}

/** What this server leaves to MongoDB: with the code that MongoDB gives to a name that it does not know itself. */
export function notOffered(what: string, code: ErrorName | number = "NotImplemented"): CommandError {
  const message = `the embedded store does not offer ${what}: set MONGODB_URL`;
  return typeof code === "number" ? located(code, message) : commandError(code, message);
}

/** MongoDB's errors that the language of queries and updates gives, by their names. */
export const badValue = (message: string) => commandError("BadValue", message);
export const failedToParse = (message: string) => commandError("FailedToParse", message);
export const typeMismatch = (message: string) => commandError("TypeMismatch", message);

/** An error that MongoDB numbers without naming it. */
export const located = (code: number, message: string) => new CommandError(code, `Location${code}`, message);

/** How much of a value an error message quotes, in characters. */
const maxShown = 200;

/** A value as messages quote it. */
export function showValue(value: unknown): string {
  const shown = JSON.stringify(value ?? null) ?? "null";
  return shown.length > maxShown ? `${shown.slice(0, maxShown)}...` : shown;
}
