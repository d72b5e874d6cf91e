import { z } from "zod";
import { errorViewSchema } from "../jobs/job-view.ts";
import { toView } from "../lib/defined.ts";
import type { WorkflowsDeps } from "./deps.ts";

/** Most bytes of items on a page, unless one alone has more. */
const MAX_PAGE_BYTES = 2 << 20;

/** Which items: of the list at this path, from this index on. */
export const itemQuerySchema = z.strictObject({
  path: z
    .string()
    .min(1)
    .max(500)
    .default("0")
    .describe("Of the `for_each`, as `3`; within another list's item 17 as `3/do[17]/0`"),
  cursor: z
    .string()
    .regex(/^\d{1,5}$/, "must be the index of an item")
    .optional()
    .describe("The index of the first item; default 0"),
  limit: z.coerce.number().int().min(1).max(200).default(50),
});
export type ItemQuery = z.output<typeof itemQuerySchema>;

/** An item that has ended. */
export const itemViewSchema = z.object({
  index: z.number().int(),
  status: z.enum(["completed", "failed"]),
  startedAt: z.iso.datetime(),
  finishedAt: z.iso.datetime(),
  output: z.unknown().optional(),
  error: errorViewSchema.optional(),
});
type ItemView = z.input<typeof itemViewSchema>;

/** A page of the ended items of a list, in order, with their whole outputs. */
export async function readItems(
  { store }: Pick<WorkflowsDeps, "store">,
  tenantId: string,
  runId: string,
  { path, cursor = "0", limit }: ItemQuery,
): Promise<{ data: ItemView[]; nextCursor: string | null }> {
  const data: ItemView[] = [];
  let bytes = 0;
  const found = store.workflowRuns.items(tenantId, runId, { scope: `${path}/do`, from: Number(cursor) });
  for await (const { seq: index, status, startedAt, finishedAt, output, error, bytes: own = 0 } of found.limit(
    limit + 1,
  )) {
    bytes += own;
    if (data.length === limit || (data.length > 0 && bytes > MAX_PAGE_BYTES))
      return { data, nextCursor: String(index) };
    const result = output === undefined ? undefined : JSON.parse(output);
    data.push(toView({ index, status, startedAt, finishedAt, output: result, error }));
  }
  return { data, nextCursor: null };
}
