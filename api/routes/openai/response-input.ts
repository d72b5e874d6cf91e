import type { ResponsesBody } from "../../../src/surfaces/responses/request-schemas.ts";
import { refersToFiles } from "../../../src/surfaces/responses/stored/input-files.ts";
import { type Conversation, newConversation, refersToStored } from "../../../src/surfaces/responses/stored/recall.ts";
import type { HandlerInput } from "../../route.ts";

type With<B> = HandlerInput<unknown, unknown, B>;

/** A call with the contents of the files that its input names. @throws AppError as `withFiles`. */
export async function withContents<B extends Pick<ResponsesBody, "input">, I extends With<B>>(given: I): Promise<I> {
  const { body, caller, platform, reserve } = given;
  if (!refersToFiles(body)) return given;
  const files = {
    find: (id: string) => platform.vectorStores.files.findFile(caller, id),
    read: (id: string) => platform.batches.files.content(caller.tenantId, id),
    reserve,
  };
  return { ...given, body: await platform.responses.withFiles(files, body) };
}

type Recalled = Pick<ResponsesBody, "input" | "previous_response_id" | "conversation">;

/** The conversation that a call is about. @throws AppError as `recall`. */
export async function recallInput(given: With<Recalled>): Promise<Conversation> {
  const { body, caller, platform, reserve } = given;
  if (!refersToStored(body)) return newConversation(body);
  return platform.responses.recall({ caller, body, reserve });
}
