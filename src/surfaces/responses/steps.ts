import type { AnsweredChat, ChatDelta } from "../../gateway/chat/steps.ts";
import type { StreamEnd } from "../../gateway/chat/stream.ts";
import type { Citation } from "./citations.ts";
import type { SearchDelta } from "./search-items.ts";

/** A passage that a text rests on: the text before it, or up to the place `index`. */
export type CitationDelta = { type: "citation"; of: Citation; index?: number };
/** A part of a response: of a model or of a run, of a search that it made, or a passage that its text rests on. */
export type ResponseDelta = ChatDelta | SearchDelta | CitationDelta;
/** What the stream of a response has. */
export type ResponseStep = ResponseDelta | StreamEnd;
/** What a response is made of. `steps` is what came before the answer. */
export type AnsweredResponse = Omit<AnsweredChat, "steps"> & { steps?: readonly ResponseDelta[] };
