import type { AnsweredChat, ChatDelta } from "../../gateway/chat/steps.ts";
import type { StreamEnd } from "../../gateway/chat/stream.ts";
import type { Citation } from "./citations.ts";
import type { SearchDelta } from "./search-items.ts";

/** A part of a response: of a model or of a run, of a search that it made, or a passage that the text before it rests on. */
export type ResponseDelta = ChatDelta | SearchDelta | { type: "citation"; of: Citation };
/** What the stream of a response has. */
export type ResponseStep = ResponseDelta | StreamEnd;
/** What a response is made of. `steps` is what came before the answer. */
export type AnsweredResponse = Omit<AnsweredChat, "steps"> & { steps?: readonly ResponseDelta[] };
