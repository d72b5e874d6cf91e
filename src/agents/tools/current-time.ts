import { z } from "zod";
import { AppError } from "../../lib/errors.ts";
import { toolKind } from "./tool.ts";

/** Gives the current time. */
export const currentTime = toolKind({
  schema: z.strictObject({}).default({}),
  make: (_, { tool, about }) =>
    tool(
      ({ timeZone = "UTC" }) => {
        const now = new Date();
        return `${now.toISOString()}\n${formatter(timeZone).format(now)} (${timeZone})`;
      },
      {
        ...about("Gives the current date and time, in UTC or in a time zone.", 1_000),
        schema: z.object({ timeZone: z.string().max(100).optional().describe("As Europe/Berlin; default: UTC") }),
      },
    ),
});

function formatter(timeZone: string): Intl.DateTimeFormat {
  try {
    return new Intl.DateTimeFormat("en-GB", { timeZone, dateStyle: "full", timeStyle: "long" });
  } catch (error) {
    throw new AppError("invalid_request", `There is no time zone ${timeZone}.`, { cause: error });
  }
}
