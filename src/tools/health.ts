import { z } from "zod";
import { checkHealth } from "../health.ts";
import { tool } from "./tool.ts";

export const healthTool = tool({
  name: "svc_health",
  description: "Check whether the platform can do its work: the store, Redis and the workers.",
  role: "member",
  input: z.object({}),
  run: ({ platform }) => checkHealth(platform),
});
