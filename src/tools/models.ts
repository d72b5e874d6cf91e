import { modelQuerySchema } from "../gateway/schemas.ts";
import { tool } from "./tool.ts";

export const modelsTool = tool({
  name: "svc_models",
  description: "List the models that svc_chat takes, with context sizes, features and prices.",
  role: "member",
  input: modelQuerySchema,
  run: async ({ platform }, given) => ({ models: platform.gateway.models(given) }),
});
