import { z } from "zod";
import { type IdKind, idSchema } from "../src/lib/ids.ts";
import type { Page } from "../src/store/page.ts";
import { named, nameOf } from "./schema-names.ts";

/**
 * Query parameters of every list; parsed, they are a `PageQuery`. Lists are strict: without a filter that is misspelt a list has
 * what nobody asked for.
 */
export const listQuery = z.strictObject({
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(200)
    .default(50)
    .describe("Most items of a page, which also ends at about 2 MB"),
  cursor: z.string().min(1).max(512).optional().describe("`nextCursor` of the page before"),
});

/** Query parameters of a list in the order of the ids of a kind. */
export const pageQuery = (kind: IdKind) =>
  listQuery.extend({ cursor: idSchema(kind).optional().describe("`nextCursor` of the page before") });

const time = z.iso
  .datetime({ offset: true })
  .transform((text) => new Date(text))
  .optional();

/** Parameters of lists of what happened: what it is of, when it began, and a text in it. */
export const filterQuery = {
  agentId: idSchema("agent").optional(),
  workflowId: idSchema("workflow").optional(),
  from: time.describe("What began then or later"),
  to: time.describe("What began before"),
  q: z
    .string()
    .trim()
    .min(1)
    .max(200)
    .optional()
    .describe("A part of its title or its texts that the list shows, in letters of any case"),
};

/** Schema of a list: a `Page`, with the `total` where all items are at hand. That of an item `AgentSummary` is `AgentList` in the documentation. */
export function listOf<T extends z.ZodType>(item: T) {
  const list = z.object({ data: z.array(item), nextCursor: z.string().nullable(), total: z.int().min(0).optional() });
  const name = nameOf(item);
  return name === undefined ? list : named(`${name.replace(/Summary$/, "")}List`, list);
}

/** A list that is one page. */
export const wholeList = <T>(data: T[]): Page<T> & { total: number } => ({
  data,
  nextCursor: null,
  total: data.length,
});

/** The query of such a list: it takes no parameter. */
export const wholeListQuery = z.strictObject({});

/** Headers of a list whose body the interface fixes. */
export const totalHeader = { "x-total-count": "How many items the list has, on all pages" };
