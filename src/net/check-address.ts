import { AppError } from "../errors.ts";
import type { GuardedRequest } from "./guarded-request.ts";

/** Checks an address that a caller gave in the field `param`. @throws AppError of the guard, which names the field. */
export function checkAddress(outside: Pick<GuardedRequest, "check">, url: string, param: string): void {
  try {
    outside.check(url);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new AppError(error.code, error.message, { param, details: error.details });
  }
}
