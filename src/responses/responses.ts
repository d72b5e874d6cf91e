import { AppError, notFound } from "../errors.ts";
import type { MadeResponse } from "../gateway/responses/response.ts";
import type { ResponseObject } from "../gateway/responses/response-schemas.ts";
import type { Logger } from "../logger.ts";
import type { ResponseStore, StoredResponse } from "../store/response-store.ts";
import type { Quotas } from "../tenancy/quotas.ts";
import { toInputItemId } from "./item-ids.ts";
import { type Conversation, keptItems, parseItems, recall } from "./recall.ts";
import { toShownItem, withoutReasoning } from "./views.ts";

/** Largest record, in bytes; MongoDB takes none above 16 MiB. */
const MAX_RECORD_BYTES = 12 << 20;
const DAY_MS = 86_400_000;

export type ResponsesDeps = {
  store: { responses: ResponseStore };
  quotas: Quotas;
  config: { keptDays: number; maxConversationBytes: number };
  logger: Logger;
};

/** Responses of the Responses API that can be read again, and continued. */
export function makeResponses({ store: { responses }, quotas, config, logger }: ResponsesDeps) {
  const find = async (tenantId: string, id: string): Promise<StoredResponse> => {
    const record = await responses.get(tenantId, id);
    if (record === null) throw notFound("response");
    return record;
  };
  return {
    /** See `recall`. */
    recall: (asked: Parameters<typeof recall>[1]) =>
      recall({ store: responses, maxBytes: config.maxConversationBytes }, asked),
    /**
     * Prepares to store the response to a conversation, before a model is called. The result stores the response and returns it
     * as its caller is to get it: with `store: false` where it could not be written, since its answer is there and is paid.
     * @throws AppError `request_too_large`; `quota_exceeded` when the tenant stores too much.
     */
    async prepare(tenantId: string, conversation: Conversation) {
      const input = JSON.stringify(keptItems(conversation.input));
      const inputBytes = Buffer.byteLength(input);
      if (inputBytes > MAX_RECORD_BYTES) throw tooLarge();
      const takeMore = await quotas.check(tenantId, "storedBytes", inputBytes);
      return async (made: MadeResponse): Promise<ResponseObject> => {
        try {
          const record = toRecord({ tenantId, made, input, inputBytes, conversation, keptDays: config.keptDays });
          const { bytes } = record;
          if (bytes.response + bytes.output + bytes.input > MAX_RECORD_BYTES) throw tooLarge();
          takeMore(bytes.response + bytes.output);
          await responses.insert(record);
          return made.response;
        } catch (error) {
          logger.warn({ err: error, tenantId, responseId: made.response.id }, "a response could not be stored");
          return { ...made.response, store: false };
        }
      };
    },
    /** A stored response; with its reasoning where it is to go back. @throws AppError `not_found`. */
    async get(tenantId: string, id: string, isSealedShown: boolean): Promise<ResponseObject> {
      return toShown(await find(tenantId, id), isSealedShown);
    },
    /** The items of the input of a response, in their order. @throws AppError `not_found`. */
    async inputItems(tenantId: string, id: string, isSealedShown: boolean) {
      const { input } = await find(tenantId, id);
      return parseItems(input).map((item, place) =>
        toShownItem({ id: toInputItemId(id, item, place), item, isSealedShown }),
      );
    },
    /** Deletes a response with all that it has. @throws AppError `not_found`. */
    async remove(tenantId: string, id: string): Promise<void> {
      if (!(await responses.remove(tenantId, id))) throw notFound("response");
    },
  };
}

function tooLarge(): AppError {
  const message = `A response that is stored has ${MAX_RECORD_BYTES} bytes at most, with its input; send store: false.`;
  return new AppError("request_too_large", message, { param: "input" });
}

type Draft = {
  tenantId: string;
  made: MadeResponse;
  input: string;
  inputBytes: number;
  conversation: Conversation;
  keptDays: number;
};

function toRecord({ tenantId, made, input, inputBytes, conversation, keptDays }: Draft): StoredResponse {
  const { output: _output, ...about } = made.response;
  const [response, output] = [JSON.stringify(about), JSON.stringify(made.kept)];
  const bytes = { response: Buffer.byteLength(response), output: Buffer.byteLength(output), input: inputBytes };
  const { chain, total, input: items } = conversation;
  const createdAt = new Date();
  return {
    _id: made.response.id,
    tenantId,
    response,
    output,
    input,
    bytes,
    chain: [...chain],
    total: {
      items: total.items + keptItems(items).length + made.kept.length,
      bytes: total.bytes + bytes.input + bytes.output,
    },
    createdAt,
    expireAt: new Date(createdAt.getTime() + keptDays * DAY_MS),
  };
}

function toShown({ response, output }: StoredResponse, isSealedShown: boolean): ResponseObject {
  const about = JSON.parse(response) as Omit<ResponseObject, "output">; // as `toRecord` wrote it
  const items = JSON.parse(output) as ResponseObject["output"]; // likewise
  return { ...about, output: isSealedShown ? items : items.map(withoutReasoning) };
}
