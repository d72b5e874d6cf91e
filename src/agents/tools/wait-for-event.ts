import { z } from "zod";
import { withFewFields } from "../../lib/bounded-json.ts";
import { MAX_WAIT_MS, waitInCall } from "../wait-in-call.ts";
import { toolKind } from "./tool.ts";

/** Fields that a match names at most. */
const MAX_MATCH = 50;

/** Waits for an event of the tenant. While it does, neither a worker nor Redis holds anything for the run. */
export const waitForEvent = toolKind({
  schema: z.strictObject({}).default({}),
  make: (_, setup) =>
    setup.tool(
      async ({ name, match, timeoutMs }, config) => {
        const until = new Date(Date.now() + timeoutMs);
        const ended = await waitInCall(setup, setup.callOf(config), { until, event: { name, match } });
        if (ended?.status === "over") return `{"event":${JSON.stringify(name)},"data":${ended.data ?? "null"}}`;
        return `The event ${name} did not come within ${timeoutMs} ms.`;
      },
      {
        ...setup.about(
          "Waits for an event, which another system reports. Events that came before do not count.",
          60_000,
          true, // as the data of events are read
        ),
        schema: z.object({
          name: z.string().min(1).max(200).describe("The event's name"),
          match: withFewFields(MAX_MATCH, z.record(z.string(), z.unknown()))
            .optional()
            .describe("Fields that the event's data must have; default: any event of the name"),
          timeoutMs: z.number().int().min(1).max(MAX_WAIT_MS).describe("How long to wait at most, in milliseconds"),
        }),
      },
    ),
});
