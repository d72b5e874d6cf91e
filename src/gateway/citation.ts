import { z } from "zod";
import { idSchema } from "../lib/ids.ts";

/** A passage of a document that an answer rests on. */
export const citationSchema = z.object({
  documentId: idSchema("document"),
  chunkId: z.string(),
  title: z.string(),
  page: z.int().optional(),
  heading: z.string().optional().describe("The headings above, joined by ` > `"),
  quote: z.string().describe("Words of the passage, as it has them"),
  url: z.string().optional().describe("Where the document was read, if it has a URL"),
});
export type Citation = z.output<typeof citationSchema>;

/** The same with the place in the text of a chat that rests on it. */
export const placedCitationSchema = citationSchema.extend({
  startIndex: z.int().min(0).describe("Where the text begins that rests on it, in UTF-16 units"),
  endIndex: z.int().min(0).describe("Where that text ends"),
});
export type PlacedCitation = z.output<typeof placedCitationSchema>;
