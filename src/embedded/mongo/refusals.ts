import { CommandError, commandError } from "./command-error.ts";

/** MongoDB's errors that the language of queries and updates gives, by their names. */
export const badValue = (message: string) => commandError("BadValue", message);
export const failedToParse = (message: string) => commandError("FailedToParse", message);
export const typeMismatch = (message: string) => commandError("TypeMismatch", message);
export const pathNotViable = (message: string) => commandError("PathNotViable", message);
export const conflictingUpdate = (message: string) => commandError("ConflictingUpdateOperators", message);
export const immutableField = (message: string) => commandError("ImmutableField", message);
export const invalidOptions = (message: string) => commandError("InvalidOptions", message);

/** An error that MongoDB numbers without naming it. */
export const located = (code: number, message: string) => new CommandError(code, `Location${code}`, message);
