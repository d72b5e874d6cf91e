import { z } from "zod";

/** Query parameters of every list. */
export const listQuery = z.object({
  limit: z.coerce.number().int().min(1).max(200).default(50).describe("Most items of a page"),
  cursor: z.string().min(1).max(512).optional().describe("`nextCursor` of the page before"),
});

/** Schema of a list's answer. */
export function listOf<T extends z.ZodType>(item: T) {
  return z.object({ data: z.array(item), nextCursor: z.string().nullable() });
}

/** The page that a parsed list query asks for; without a cursor it is the first. */
export function toPage({ limit, cursor }: z.output<typeof listQuery>): { limit: number; cursor?: string } {
  return { limit, ...(cursor === undefined ? {} : { cursor }) };
}
