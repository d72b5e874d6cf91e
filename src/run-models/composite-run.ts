import { guardTexts } from "../composite/guard-input.ts";
import { isRegulated } from "../composite/profiles.ts";
import { type CompositeInput, type CompositeResult, compositeBodySchema } from "../composite/schemas.ts";
import type { ChatRequest } from "../gateway/chat/request.ts";
import { AppError, renameField } from "../lib/errors.ts";
import { fieldIn, parseRun, refuseMedia, toConversation, toOneText } from "./conversation.ts";
import type { ChatCaller, PreparedRun, RunModelsDeps } from "./deps.ts";
import { parseComposite } from "./names.ts";

/** The run of a pattern that answers a chat with it. @throws AppError `unknown_model`, `invalid_request`, `compliance_blocked`. */
export function prepareCompositeRun(deps: RunModelsDeps, caller: ChatCaller, request: ChatRequest): PreparedRun {
  const about = parseComposite(request.model);
  const conversation = toConversation(request);
  refuseMedia(conversation, "a composite", isRegulated(about.profile) ? about.profile : undefined);
  const isAlone = conversation.history.length === 0;
  const withBody = async <T>(work: (body: CompositeInput) => Promise<T> | T): Promise<T> => {
    try {
      return await work(parseRun(compositeBodySchema, { ...about, input: toOneText(conversation) }));
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      throw renameField(error, (name) => (isAlone ? fieldIn(conversation, name) : "messages")); // it has no other field
    }
  };
  return {
    check: () => withBody(deps.composite.guard),
    accept: (jobId) => withBody((body) => deps.composite.accept({ caller, body, isInteractive: true, jobId })),
    makeNews:
      () =>
      async ({ type, data }) => {
        if (type !== "step") return [];
        const { role, model, status } = Object(data);
        return [{ type: "reasoning-delta", text: `${role}: ${model}${status === "failed" ? ", failed" : ""}\n` }];
      },
    toAnswer(result) {
      const { executionId: id, output: text, tokensUsed: tokens, ...rest } = result as CompositeResult; // of our own job
      const { outputTokens, costUsd, finishReason = "stop" } = rest;
      return { id, text, finishReason, spent: { tokens, outputTokens, costUsd } };
    },
  };
}

/** Refuses what a regulated profile does not take, message by message, before anything of a chat is kept. Throws as `prepareCompositeRun`. */
export function screenComposite(request: ChatRequest): void {
  const { profile } = parseComposite(request.model);
  const conversation = toConversation(request);
  refuseMedia(conversation, "a composite", profile);
  const { input, history } = conversation;
  const texts = [...history, input].map(({ field, content }) => [field, content] as const);
  guardTexts(profile, Object.fromEntries(texts));
}
