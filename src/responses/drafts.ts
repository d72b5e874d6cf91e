import { AppError } from "../errors.ts";
import type { MadeResponse } from "../gateway/responses/response.ts";
import type { ResponseObject } from "../gateway/responses/response-schemas.ts";
import type { Logger } from "../logger.ts";
import type { ResponseStore, StoredResponse } from "../store/response-store.ts";
import type { Quotas } from "../tenancy/quotas.ts";
import { type Conversation, keptItems } from "./recall.ts";
import { toTexts } from "./records.ts";

/** Largest record, in bytes; MongoDB takes none above 16 MiB. */
const MAX_RECORD_BYTES = 12 << 20;
const DAY_MS = 86_400_000;

export type DraftDeps = {
  store: { responses: ResponseStore };
  quotas: Quotas;
  config: { keptDays: number };
  logger: Logger;
};

/** A response that is to be stored. */
type Draft = { tenantId: string; conversation: Conversation; input: string; takeMore(bytes: number): void };

/** Records of responses: what cannot be stored is refused before a model is called. */
export function makeDrafts({ store, quotas, config, logger }: DraftDeps) {
  const drafts = {
    /** @throws AppError `request_too_large`; `quota_exceeded` when the tenant stores too much. */
    async begin(tenantId: string, conversation: Conversation): Promise<Draft> {
      const input = JSON.stringify(keptItems(conversation.input));
      const bytes = Buffer.byteLength(input);
      if (bytes > MAX_RECORD_BYTES) throw tooLarge();
      return { tenantId, conversation, input, takeMore: await quotas.check(tenantId, "storedBytes", bytes) };
    },
    /** The record of a response, which has `more` bytes besides. @throws AppError `request_too_large`. */
    toRecord({ tenantId, conversation, input, takeMore }: Draft, made: MadeResponse, more = 0): StoredResponse {
      const texts = toTexts(made.response, made.kept);
      const bytes = { ...texts.bytes, response: texts.bytes.response + more, input: Buffer.byteLength(input) };
      if (bytes.response + bytes.output + bytes.input > MAX_RECORD_BYTES) throw tooLarge();
      takeMore(bytes.response + bytes.output);
      const { chain, total } = conversation;
      const createdAt = new Date();
      return {
        ...texts,
        _id: made.response.id,
        tenantId,
        input,
        bytes,
        chain: [...chain],
        total: {
          items: total.items + keptItems(conversation.input).length + made.kept.length,
          bytes: total.bytes + bytes.input + bytes.output,
        },
        createdAt,
        expireAt: new Date(createdAt.getTime() + config.keptDays * DAY_MS),
      };
    },
    /**
     * Stores a response and returns it as its caller is to get it: with `store: false` where it could not be written, since its
     * answer is there and is paid.
     */
    async keep(draft: Draft, made: MadeResponse): Promise<ResponseObject> {
      try {
        await store.responses.insert(drafts.toRecord(draft, made));
        return made.response;
      } catch (error) {
        const { tenantId } = draft;
        logger.warn({ err: error, tenantId, responseId: made.response.id }, "a response could not be stored");
        return { ...made.response, store: false };
      }
    },
  };
  return drafts;
}

function tooLarge(): AppError {
  const message = `A response that is stored has ${MAX_RECORD_BYTES} bytes at most, with its input; send store: false.`;
  return new AppError("request_too_large", message, { param: "input" });
}
