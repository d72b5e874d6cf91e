import { AppError } from "../../lib/errors.ts";
import { planChat } from "../chat/plan.ts";
import type { Routing } from "../chat/route-model.ts";
import type { GatewayDeps } from "../deps.ts";
import { beginCall, type CallAbout, type GatewayCaller } from "./account.ts";

type Refused = Pick<CallAbout, "kind" | "isStreamed"> & {
  /** By which model it would have been answered; it may throw. */
  findRouting(): Promise<Routing>;
};

/**
 * Does what guards the texts of a call. If they are refused, the call gets a record: without texts, at no cost, of the model that
 * would have been asked. One that would have had no model gets none. Throws what `guard` throws.
 */
export async function notingBlocked<T>(
  deps: Pick<GatewayDeps, "ledger">,
  caller: GatewayCaller,
  { findRouting, ...about }: Refused,
  guard: () => T | Promise<T>,
): Promise<T> {
  try {
    return await guard();
  } catch (error) {
    if (error instanceof AppError && error.code === "compliance_blocked") {
      const routing = await findRouting().catch(() => undefined); // the error of its guard is told
      if (routing) beginCall(deps.ledger, caller, { ...about, routing, inputTokens: () => 0 }).settle({ error });
    }
    throw error;
  }
}

/** For chats that are kept, and so guarded, before they are planned. */
export const makeGuarding = (deps: GatewayDeps) => ({
  /** Does what guards the texts of a chat; see `notingBlocked`. */
  chat<T>(caller: GatewayCaller, model: string, guard: () => T): Promise<T> {
    const findRouting = async () => (await planChat(deps, caller.tenantId, { model, messages: [] })).routing;
    return notingBlocked(deps, caller, { kind: "chat", isStreamed: false, findRouting }, guard);
  },
});
