import { unavailable } from "../../src/errors.ts";
import type { ApiContext } from "../context.ts";

/** Bodies up to this size are not counted; the places for concurrent requests bound them. In bytes. */
const SMALL_BYTES = 1 << 20;

/** Reserves memory for a request's body until its response is over. @throws AppError `unavailable` when there is none left. */
export type BodyBudget = (ctx: ApiContext, limitBytes: number) => void;

/**
 * The memory that large bodies of one process may take together, in bytes, whoever sends them. A body that does not tell its
 * length counts as one of the largest that is allowed.
 */
export function makeBodyBudget(totalBytes: number): BodyBudget {
  let taken = 0;
  return function reserveForBody(ctx, limitBytes) {
    const told = ctx.get("content-length");
    const bytes = told === "" && ctx.get("transfer-encoding") !== "" ? limitBytes : Math.min(Number(told), limitBytes);
    if (!(bytes > SMALL_BYTES)) return;
    if (taken + bytes > totalBytes) throw unavailable("Memory for another large body");
    taken += bytes;
    ctx.res.once("close", () => {
      taken -= bytes;
    });
  };
}
