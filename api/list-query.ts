import { z } from "zod";
import { named, nameOf } from "./schema-names.ts";

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

/** Schema of a list: a `Page`. That of an item `AgentSummary` is `AgentList` in the documentation. */
export function listOf<T extends z.ZodType>(item: T) {
  const list = z.object({ data: z.array(item), nextCursor: z.string().nullable() });
  const name = nameOf(item);
  return name === undefined ? list : named(`${name.replace(/Summary$/, "")}List`, list);
}
