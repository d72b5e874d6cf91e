import { autoModel, type CataloguedModel, findModel, requireModel } from "./catalogue.ts";
import type { ChatRequest } from "./chat/request.ts";
import type { GatewayDeps } from "./deps.ts";
import { estimateMessageTokens, estimateTokens } from "./tokens.ts";

/** Tokens that a system message adds to its text. */
const TOKENS_OF_SYSTEM = 4;

/**
 * Estimates the tokens of a chat's whole prompt, with its instructions and tools. Pictures are counted as its model counts
 * them.
 * @throws AppError `unknown_model`.
 */
export async function countPrompt(deps: GatewayDeps, tenantId: string, request: ChatRequest): Promise<number> {
  const { model: name } = request;
  const model = name === autoModel ? undefined : requireModel(await findModel(deps, tenantId, name), name, "chat");
  return estimatePrompt(request, model);
}

/** The same by the rules of most models, if no model is given. */
export function estimatePrompt({ messages, systemPrompt, tools }: ChatRequest, model?: CataloguedModel): number {
  const system = systemPrompt === undefined ? 0 : TOKENS_OF_SYSTEM + estimateTokens(systemPrompt);
  return system + estimateMessageTokens(messages, model) + (tools ? estimateTokens(JSON.stringify(tools)) : 0);
}
