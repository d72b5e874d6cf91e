import { defined } from "../../../lib/defined.ts";
import { AppError } from "../../../lib/errors.ts";
import { sizeInWords } from "../../../lib/size-in-words.ts";
import type { Logger } from "../../../observe/logger.ts";
import type { ResponseStore, StoredResponse } from "../../../store/response-store.ts";
import type { Quotas } from "../../../tenancy/quotas.ts";
import type { MadeResponse } from "../response.ts";
import type { ResponseObject } from "../response-schemas.ts";
import { type Conversation, keptItems } from "./recall.ts";
import { toJson, toTexts } from "./records.ts";

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
export type Draft = {
  tenantId: string;
  /** The key that asks for it. */
  keyId: string;
  conversation: Conversation;
  /** Its own input: the text of its items, their number and their bytes. */
  input: { text: string; items: number; bytes: number };
  takeMore(bytes: number): void;
};

/** Records of responses: what cannot be stored is refused before a model is called. */
export function makeDrafts({ store, quotas, config, logger }: DraftDeps) {
  const drafts = {
    /** @throws AppError `request_too_large`; `quota_exceeded` when the tenant stores too much. */
    async begin({ tenantId, keyId }: { tenantId: string; keyId: string }, conversation: Conversation): Promise<Draft> {
      const items = keptItems(conversation.input);
      const text = JSON.stringify(items);
      const bytes = Buffer.byteLength(text);
      if (bytes > MAX_RECORD_BYTES) throw tooLarge();
      const takeMore = await quotas.check(tenantId, "storedBytes", bytes);
      return { tenantId, keyId, conversation, input: { text, items: items.length, bytes }, takeMore };
    },
    /** The record of a response, which has `more` bytes besides. @throws AppError `request_too_large`. */
    toRecord({ tenantId, keyId, conversation, input, takeMore }: Draft, made: MadeResponse, more = 0): StoredResponse {
      const texts = toTexts(made.response, made.kept);
      const bytes = { ...texts.bytes, response: texts.bytes.response + more, input: input.bytes };
      if (bytes.response + bytes.output + bytes.input > MAX_RECORD_BYTES) throw tooLarge();
      takeMore(bytes.response + bytes.output);
      const { chain, conversationId, total } = conversation;
      const createdAt = new Date();
      return {
        ...texts,
        _id: made.response.id,
        tenantId,
        keyId,
        input: input.text,
        bytes,
        chain: [...chain],
        ...defined({ conversationId }),
        total: {
          items: total.items + Math.max(1, input.items + made.kept.length), // one without items is read with the others, too
          bytes: total.bytes + bytes.input + bytes.output,
        },
        createdAt,
        expireAt: new Date(createdAt.getTime() + config.keptDays * DAY_MS),
      };
    },
    /**
     * Stores a response and returns it as its caller is to get it, with its JSON where its record has that: with `store: false`
     * where it could not be written, since its answer is there and is paid.
     */
    async keep(draft: Draft, made: MadeResponse): Promise<{ response: ResponseObject; json?: string | undefined }> {
      try {
        const record = drafts.toRecord(draft, made);
        await store.responses.insert(record);
        return { response: made.response, json: toJson(record, made) };
      } catch (error) {
        const { tenantId } = draft;
        logger.warn({ err: error, tenantId, responseId: made.response.id }, "a response could not be stored");
        return { response: { ...made.response, store: false } };
      }
    },
  };
  return drafts;
}

function tooLarge(): AppError {
  const message = `A response that is stored has ${sizeInWords(MAX_RECORD_BYTES)} at most, with its input; send store: false.`;
  return new AppError("request_too_large", message, { param: "input" });
}
