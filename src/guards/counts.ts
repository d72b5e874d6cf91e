import { z } from "zod";
import type { GuardCount } from "./rules.ts";

/** What guards have found, as it is shown. */
export const guardCountsSchema = z
  .array(z.object({ kind: z.string(), place: z.string(), action: z.string(), count: z.number().int() }))
  .describe("What guards have found in its texts: how many values of a kind, by place. Never the values");

/** Adds counts to those of the same kind, place and action. */
export function addCounts(all: GuardCount[], more: readonly GuardCount[]): void {
  for (const { kind, place, action, count } of more) {
    const known = all.find((one) => one.kind === kind && one.place === place && one.action === action);
    if (known) known.count += count;
    else all.push({ kind, place, action, count });
  }
}
