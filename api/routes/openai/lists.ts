import { z } from "zod";
import type { Page, PageQuery } from "../../../src/store/page.ts";

/** The paging of OpenAI's lists: after the last id of the page before. */
export const afterQuery = z.strictObject({
  after: z.string().max(100).optional(),
  limit: z.coerce.number().int().min(1).max(200).default(20),
});

export const toPageQuery = ({ after, limit }: z.output<typeof afterQuery>): PageQuery => ({ limit, cursor: after });

/** Schema of a page as OpenAI's clients read it; `more` are the fields that only some of its lists have. */
export const openAiListOf = <T extends z.ZodType, F extends z.ZodRawShape>(item: T, more: F) =>
  z.object({ object: z.literal("list"), data: z.array(item), ...more, has_more: z.boolean() });

export function toOpenAiList<T, U>({ data, nextCursor }: Page<T>, toView: (item: T) => U) {
  return { object: "list", data: data.map(toView), has_more: nextCursor !== null };
}

/** A time as OpenAI writes it, in seconds since 1970. */
export const toSeconds = (date: Date): number => Math.floor(date.getTime() / 1_000);
