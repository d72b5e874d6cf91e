import { AppError } from "../../../lib/errors.ts";
import { readItem } from "../batch-http.ts";
import { toWireRequest } from "../openai-responses/request.ts";
import { fromResponse } from "../openai-responses/response.ts";
import { wireResponse } from "../openai-responses/schemas.ts";
import { toWireChat, type WireDialect } from "../openai-wire/chat.ts";
import { fromWireChat } from "../openai-wire/completion.ts";
import type { BatchItem, BatchItemResult, ProviderBatches } from "../provider.ts";
import { fromWireError } from "../wire-errors.ts";
import { makeBatchFiles, type WireItem } from "./batch-files.ts";
import { needsResponses } from "./choose-wire.ts";

const CHAT = "/v1/chat/completions";
const RESPONSES = "/v1/responses";
/** Chats in OpenAI's Batch API. */
export function makeOpenAiBatches(baseUrl: string, dialect: WireDialect): ProviderBatches {
  const { submit, find, hasEnded, items } = makeBatchFiles(baseUrl);
  return {
    kindOf: (request) => (needsResponses(request) ? RESPONSES : ""),
    submit: (batchId, given, context) =>
      submit({ batchId, endpoint: endpointOf(given), file: toFile(given, dialect) }, context),
    find: ({ batchId }, context) => find(batchId, context),
    hasEnded,
    async *results(id, context) {
      for await (const item of items(id, context)) yield toItemResult(item);
    },
  };
}

const endpointOf = (items: readonly BatchItem[]) =>
  items.some(({ request }) => needsResponses(request)) ? RESPONSES : CHAT;

function toFile(items: readonly BatchItem[], dialect: WireDialect): string {
  const url = endpointOf(items);
  return items
    .map(({ customId, request }) => {
      const head = JSON.stringify({ custom_id: customId, method: "POST", url });
      const body = url === CHAT ? toWireChat(request, dialect, false) : toWireRequest(request, false);
      return `${head.slice(0, -1)},"body":${body}}\n`;
    })
    .join("");
}

function toItemResult({ custom_id: customId, response, error }: WireItem): BatchItemResult {
  if (error?.code === "batch_expired") return { customId, isExpired: true };
  if (!response) {
    return { customId, error: new AppError("provider_failed", error?.message ?? "The provider gave no answer.") };
  }
  const body = JSON.stringify(response.body);
  if (response.status_code >= 300) return { customId, error: fromWireError(response.status_code, {}, body) };
  const read = wireResponse.safeParse(response.body).success ? fromResponse : fromWireChat;
  return readItem(customId, () => ({ result: read(body, "") }));
}
