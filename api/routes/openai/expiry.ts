import { z } from "zod";

/** An hour and 30 days, as at OpenAI. */
const [LEAST_S, MOST_S] = [3_600, 2_592_000];

/** When a file expires. Forms send the number as text. */
export const expiresAfterSchema = z.strictObject({
  anchor: z.literal("created_at"),
  seconds: z.coerce.number<number | string>().int().min(LEAST_S).max(MOST_S),
});
