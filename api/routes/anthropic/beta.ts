import { z } from "zod";

/** Anthropic's clients name here that they use its beta interface, which has the same paths. */
export const betaQuery = z.object({ beta: z.string().max(10).optional() });

/** A path as a request for Anthropic is forwarded to it. */
export function toForwardedPath(path: string, { beta }: z.output<typeof betaQuery>): string {
  return beta === undefined ? path : `${path}?beta=${encodeURIComponent(beta)}`;
}
