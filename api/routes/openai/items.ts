import { z } from "zod";
import { searchResults } from "../../../src/surfaces/responses/file-search.ts";
import { sealedReasoning } from "../../../src/surfaces/responses/request.ts";
import { type Included, shownItemSchema } from "../../../src/surfaces/responses/stored/views.ts";
import type { Caller } from "../../../src/tenancy/roles.ts";
import { named } from "../../schema-names.ts";
import { openAiListOf } from "./lists.ts";

const names = z.union([z.string().max(200), z.array(z.string().max(200)).max(20)]).optional();
/** Clients write an array in a query by either name. */
export const including = z.strictObject({
  include: names.describe(`\`${sealedReasoning}\`, \`${searchResults}\``),
  "include[]": names,
});
export const includes = (query: z.output<typeof including>, name: string) =>
  [query.include, query["include[]"]].flat().includes(name);

/** What a caller gets to see of items. Another key may have searched what one that is limited must not read. */
export const toIncluded = (query: z.output<typeof including>, { collections }: Caller): Included => ({
  isSealedShown: includes(query, sealedReasoning),
  areResultsShown: collections === undefined && includes(query, searchResults),
});

export const itemsQuery = including.extend({
  limit: z.coerce.number().int().min(1).max(100).default(20),
  order: z.enum(["asc", "desc"]).default("desc"),
  after: z.string().max(200).optional().describe("The id of the last item of the page before"),
});
export const itemSchema = named("ResponseItem", shownItemSchema);
export const itemPageSchema = named(
  "ResponseItemList",
  openAiListOf(itemSchema, { first_id: z.string().nullable(), last_id: z.string().nullable() }),
);

/** A page of all items, after the one of the id `after`; an unknown one has nothing after it. */
export function toItemPage<T extends { id: string }>(
  oldestFirst: readonly T[],
  { after, limit, order }: Pick<z.output<typeof itemsQuery>, "after" | "limit" | "order">,
) {
  const items = order === "asc" ? oldestFirst : oldestFirst.toReversed();
  const last = after === undefined ? -1 : items.findIndex(({ id }) => id === after);
  const rest = after !== undefined && last < 0 ? [] : items.slice(last + 1);
  const data = rest.slice(0, limit);
  const [first_id, last_id] = [data[0]?.id ?? null, data.at(-1)?.id ?? null];
  return { object: "list", data, first_id, last_id, has_more: rest.length > limit };
}
