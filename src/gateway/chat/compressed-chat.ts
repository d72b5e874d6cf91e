import type { GatewayCaller } from "../money/account.ts";
import type { ChatOutcome } from "./complete.ts";
import { type CompressionReport, compressChat } from "./compress.ts";
import type { ChatRequest } from "./request.ts";
import type { StreamEvent } from "./stream.ts";

type Chat = {
  complete(caller: GatewayCaller, request: ChatRequest): Promise<ChatOutcome>;
  stream(caller: GatewayCaller, request: ChatRequest): AsyncIterable<StreamEvent[]>;
};

/** Chats whose callers want it are compressed first; what was done is told with their outcome. */
export function makeCompressedChat(chat: Chat): Chat {
  return {
    complete(caller, request) {
      if (request.options?.compress !== true) return chat.complete(caller, request);
      const { request: compressed, report: compression } = compressChat(request);
      return chat.complete(caller, compressed).then((outcome) => ({ ...outcome, compression }));
    },
    stream(caller, request) {
      if (request.options?.compress !== true) return chat.stream(caller, request);
      const { request: compressed, report } = compressChat(request);
      return withReport(chat.stream(caller, compressed), report);
    },
  };
}

async function* withReport(
  batches: AsyncIterable<StreamEvent[]>,
  compression: CompressionReport,
): AsyncGenerator<StreamEvent[]> {
  for await (const batch of batches) {
    yield batch.map((event) => (event.type === "end" ? { ...event, compression } : event));
  }
}
