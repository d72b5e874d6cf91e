import { toCompletionRequest } from "../../gateway/chat/attempt.ts";
import { type ForwardedChat, planForwarded, toCountedRequest } from "../../gateway/chat/forward.ts";
import type { Plan, PlannedChat } from "../../gateway/chat/plan.ts";
import type { GatewayDeps } from "../../gateway/deps.ts";
import { boundChat, type CostBounds } from "../../gateway/money/prices.ts";
import type { BatchItem, CompletionRequest, Provider, RawRequest } from "../../gateway/providers/provider.ts";
import { defined } from "../../lib/defined.ts";
import { hashDigits } from "../../lib/ids.ts";
import type { BatchItemRecord } from "../../store/batch-store.ts";

/** How a chat is to be answered by a batch, and what it may cost at the full price. */
type PlannedItem = {
  plan: Plan;
  request: CompletionRequest;
  bounds: CostBounds;
  raw?: RawRequest;
  debug?: BatchItemRecord["debug"];
};

/**
 * A planned chat as a batch asks for it. One that is forwarded as it came has its text alone: what was read of it to count it
 * is not kept. @throws AppError as `planForwarded`.
 */
export async function planItem(
  deps: GatewayDeps,
  tenantId: string,
  given: PlannedChat | ForwardedChat,
): Promise<PlannedItem> {
  if ("raw" in given) {
    const { model, raw, maxTokens } = given;
    const request = { model: model.wireId ?? model.id, messages: [], ...defined({ maxTokens }) };
    const bounds = toCountedRequest(given).toBounds();
    return { plan: await planForwarded(deps, { tenantId }, given), request, bounds, raw };
  }
  const { plan, request: chat, compression } = given;
  const { model } = plan.routing;
  const request = toCompletionRequest(chat, model);
  const debug = chat.options?.debug === true ? defined({ compression }) : undefined;
  return { plan, request, bounds: boundChat(model, request), ...defined({ debug }) };
}

/**
 * Which chats may share a batch. A provider wants one model a batch; the key's id stands for the provider and, if a customer's
 * own, the tenant. Requests that are forwarded as they came share their headers too.
 */
export function groupOf(
  keyId: string,
  { request, raw }: Pick<BatchItem, "request"> & { raw: RawRequest | undefined },
  batches: NonNullable<Provider["batches"]>,
): string {
  const group = `${keyId}/${request.model}`;
  if (raw !== undefined) return `${group}/${hashDigits(JSON.stringify([raw.path, raw.headers]))}`;
  return `${group}${batches === "own-workers" ? "" : (batches.kindOf?.(request) ?? "")}`;
}
