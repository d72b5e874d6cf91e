import { toChatRequest } from "../gateway/chat/request.ts";
import { toChatResponse } from "../gateway/chat/response.ts";
import { chatBodySchema } from "../gateway/schemas.ts";
import { toGatewayCaller, tool } from "./tool.ts";

export const chatTool = tool({
  name: "svc_chat",
  description:
    "Ask a language model. Gives its answer as `text`, with the model that answered, token counts and cost. " +
    "`model` is an id of svc_models, `meta-llm` (the default) or `auto`, which picks one for the task.",
  role: "member",
  input: chatBodySchema.omit({ stream: true, prefer_async: true }),
  async run(call, given) {
    const request = toChatRequest({ ...given, stream: false });
    return toChatResponse(await call.platform.gateway.complete(toGatewayCaller(call), request));
  },
});
