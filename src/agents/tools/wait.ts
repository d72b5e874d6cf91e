import { z } from "zod";
import { invalidRequest } from "../../lib/errors.ts";
import { MAX_WAIT_MS, waitInCall } from "../wait-in-call.ts";
import { toolKind } from "./tool.ts";

/** Waits until a time. While it does, neither a worker nor Redis holds anything for the run. */
export const wait = toolKind({
  schema: z.strictObject({}).default({}),
  make: (_, setup) =>
    setup.tool(
      async ({ until, ms }, config) => {
        if ((until === undefined) === (ms === undefined)) throw invalidRequest("ms", "Give `until` or `ms`, not both.");
        const end = until === undefined ? Date.now() + Number(ms) : Date.parse(until);
        if (end > Date.now() + MAX_WAIT_MS) throw invalidRequest("until", "It may be 30 days from now at most.");
        await waitInCall(setup, setup.callOf(config), { until: new Date(end) });
        return `The time has come: it is ${new Date().toISOString()} now.`;
      },
      {
        ...setup.about("Waits for some time, or until a time. The run goes on then.", 60_000),
        schema: z.object({
          until: z.iso.datetime({ offset: true }).optional().describe("As 2026-03-01T09:00:00Z; 30 days ahead at most"),
          ms: z.number().int().min(1).max(MAX_WAIT_MS).optional().describe("How long, in milliseconds"),
        }),
      },
    ),
});
