import { compositeBodySchema } from "../composite/schemas.ts";
import { tool } from "./tool.ts";
import { waitForResult } from "./wait-for-result.ts";

export const compositeExecuteTool = tool({
  name: "svc_composite_execute",
  description:
    "Put a question through several model calls (a pattern) in the voice of an industry profile. Gives `output` with the " +
    "agreement of the models. Inputs of the profiles healthcare and financial must hold no personal identifiers. A long " +
    "run gives a `jobId` and `statusUrl` instead and goes on.",
  role: "member",
  input: compositeBodySchema,
  async run(call, given) {
    const { job } = await call.platform.composite.accept(call.caller, given, true);
    return waitForResult(call, job);
  },
});
