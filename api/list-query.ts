import { z } from "zod";

/** Query parameters of every list; parsed, they are a `PageQuery`. */
export const listQuery = z.object({
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(200)
    .default(50)
    .describe("Most items of a page, which also ends at about 2 MB"),
  cursor: z.string().min(1).max(512).optional().describe("`nextCursor` of the page before"),
});

/** Schema of a list's answer: a `Page`. */
export function listOf<T extends z.ZodType>(item: T) {
  return z.object({ data: z.array(item), nextCursor: z.string().nullable() });
}
