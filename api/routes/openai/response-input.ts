import type { ResponsesBody } from "../../../src/surfaces/responses/request-schemas.ts";
import { refersToFiles } from "../../../src/surfaces/responses/stored/input-files.ts";
import { type Conversation, newConversation, refersToStored } from "../../../src/surfaces/responses/stored/recall.ts";
import { takeBy } from "../../../src/tenancy/guard-policies.ts";
import type { HandlerInput } from "../../route.ts";
import { toGatewayCaller } from "../chat.ts";

type With<B> = HandlerInput<unknown, unknown, B>;

/** A call with the contents of the files that its input names. @throws AppError as `withFiles`. */
export async function withContents<B extends Kept, I extends With<B>>(asked: I): Promise<I> {
  const given = await withGuarded(asked);
  const { body, caller, platform, reserve } = given;
  if (!refersToFiles(body)) return given;
  const files = {
    find: (id: string) => platform.vectorStores.files.findFile(caller, id),
    read: (id: string) => platform.batches.files.content(caller.tenantId, id),
    reserve,
  };
  return { ...given, body: await platform.responses.withFiles(files, body) };
}

type Kept = Pick<ResponsesBody, "input"> & { store?: boolean | null | undefined; model?: string | undefined };

/** A call as it may be kept. One that keeps nothing is guarded where it goes to a model. @throws AppError `compliance_blocked`. */
async function withGuarded<I extends With<Kept>>(given: I): Promise<I> {
  const { body, caller, platform } = given;
  const guard = body.store === false ? undefined : await platform.guards.forCall(caller);
  if (guard === undefined) return given;
  const take = () => takeBy(guard, "input", body, { isWire: true });
  const { model } = body;
  if (model === undefined) return { ...given, body: await take() };
  const asking = { ...toGatewayCaller(given, "responses"), guard };
  return { ...given, body: await platform.gateway.guarding.chat(asking, model, take) };
}

type Recalled = Pick<ResponsesBody, "input" | "previous_response_id" | "conversation">;

/** The conversation that a call is about. @throws AppError as `recall`. */
export async function recallInput(given: With<Recalled>): Promise<Conversation> {
  const { body, caller, platform, reserve } = given;
  if (!refersToStored(body)) return newConversation(body);
  return platform.responses.recall({ caller, body, reserve });
}
