import { z } from "zod";
import { runBodySchema } from "../agents/schemas.ts";
import { AppError } from "../errors.ts";
import { idSchema } from "../ids.ts";
import { tool } from "./tool.ts";
import { waitForResult } from "./wait-for-result.ts";

const inputSchema = runBodySchema.extend({
  agentId: idSchema("agent").optional().describe("The agent; or give its `name`"),
  name: z.string().trim().min(1).max(200).optional().describe("The agent's name, where only one agent has it"),
});

export const agentRunTool = tool({
  name: "svc_agent_run",
  description:
    "Run an agent: it thinks and uses its tools until it answers. Gives `output` and `runId`, under which the audit trail " +
    "stays readable. A long run gives a `jobId` and `statusUrl` instead and goes on.",
  role: "member",
  input: inputSchema,
  async run(call, { agentId, name, ...body }) {
    const { agents } = call.platform;
    if ((agentId === undefined) === (name === undefined)) {
      throw new AppError("invalid_request", "Give the agent's agentId or its name, one of the two.", {
        param: "agentId",
      });
    }
    const id = agentId ?? (await agents.idOf(call.caller.tenantId, name ?? ""));
    const { job } = await agents.accept(call.caller, id, body, true);
    return waitForResult(call, job);
  },
});
