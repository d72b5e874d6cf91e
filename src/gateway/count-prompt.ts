import { autoModel, type CataloguedModel, findModel, requireModel } from "./catalogue.ts";
import type { ChatRequest } from "./chat/request.ts";
import type { GatewayDeps } from "./deps.ts";
import { estimateMessageTokens, estimateTokens } from "./tokens.ts";

/** What a system message adds besides its text. */
const TOKENS_OF_SYSTEM = 4;

/**
 * Tokens that all of a chat's prompt is about, its instructions and tools too, as its model counts pictures.
 * @throws AppError `unknown_model`.
 */
export async function countPrompt(deps: GatewayDeps, tenantId: string, request: ChatRequest): Promise<number> {
  const { model: name } = request;
  const model = name === autoModel ? undefined : requireModel(await findModel(deps, tenantId, name), name, "chat");
  return estimatePrompt(request, model);
}

/** The same by the rules of most models, where none is given. */
export function estimatePrompt({ messages, systemPrompt, tools }: ChatRequest, model?: CataloguedModel): number {
  const system = systemPrompt === undefined ? 0 : TOKENS_OF_SYSTEM + estimateTokens(systemPrompt);
  return system + estimateMessageTokens(messages, model) + (tools ? estimateTokens(JSON.stringify(tools)) : 0);
}
