import type { ChatRequest } from "../../gateway/chat/request.ts";
import { invalidRequest } from "../../lib/errors.ts";
import { fromResponsesBody } from "../../surfaces/responses/request.ts";
import type { ResponsesBody } from "../../surfaces/responses/request-schemas.ts";
import { beginResponse, toResponse } from "../../surfaces/responses/response.ts";
import type { AnsweredResponse } from "../../surfaces/responses/steps.ts";

/** What a line of responses needs besides its chat: its body, as JSON, with the tools alone of its input. */
export type ResponseLine = { body: string; ignored: string[] };

/** The chat of a line. @throws AppError `invalid_request` for what a batch does not do, and for a body that cannot be. */
export function fromResponseLine(body: ResponsesBody): { chat: ChatRequest; response: ResponseLine } {
  refuse(body);
  const { request: chat, ignored, fileSearch } = fromResponsesBody(body);
  if (fileSearch) throw invalidRequest(fileSearch.place, `${fileSearch.place}: a batch does not search.`);
  const tools = typeof body.input === "string" ? [] : body.input.filter(({ type }) => type === "additional_tools");
  return { chat, response: { body: JSON.stringify({ ...body, input: tools }), ignored } };
}

function refuse({ stream, background, conversation, previous_response_id: previous, input }: ResponsesBody): void {
  if (stream) throw invalidRequest("stream", "stream: a batch does not stream.");
  if (background) throw invalidRequest("background", "background: a batch is made in the background as it is.");
  const advice = "send the whole conversation as input.";
  if (conversation) throw invalidRequest("conversation", `conversation: a batch continues nothing; ${advice}`);
  if (previous)
    throw invalidRequest("previous_response_id", `previous_response_id: a batch continues nothing; ${advice}`);
  if (typeof input !== "string" && JSON.stringify(input).includes('"file_id":"'))
    throw invalidRequest("input", "input: a batch reads no files by their ids; send their contents.");
}

/** The response of a line, which is not stored: it is in the file. */
export function toResponseLine({ body: kept, ignored }: ResponseLine, outcome: AnsweredResponse): object {
  const body = JSON.parse(kept) as ResponsesBody; // as `fromResponseLine` wrote it
  const { response } = toResponse(beginResponse({ ...body, store: false }), body, outcome);
  return { ...response, ...(ignored.length > 0 && { _ignored: ignored }) };
}
