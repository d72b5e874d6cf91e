import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { keepDoing } from "../../../lib/keep-doing.ts";
import { tryParseJson } from "../../../lib/try-parse-json.ts";
import { readPrefix } from "../../../net/egress.ts";
import type { Logger } from "../../../observe/logger.ts";
import { isRunModel } from "../../run-model-names.ts";
import { bearer } from "../openai-wire/provider.ts";
import type { EdgeSettings, ServedModel } from "./models.ts";

/** How often the server is asked, in ms; a server that does not answer is asked less and less. */
const EVERY_MS = 60_000;
const AT_MOST_MS = 600_000;
/** Longest wait for an answer, in ms, and of a start for the first one. */
const TIMEOUT_MS = 10_000;
const START_MS = 2_000;
/** Maximum bytes of an answer that are read, and models that are taken from it. */
const MAX_BYTES = 1 << 20;
const MAX_MODELS = 200;

const listed = z.object({
  data: z.array(z.object({ id: z.string().min(1).max(200), max_model_len: z.number().int().positive().nullish() })),
});

type ServedModelsDeps = {
  edge: EdgeSettings;
  onListed(models: readonly ServedModel[]): void;
  logger: Logger;
  everyMs?: number;
};

/**
 * Keeps up with the models that the edge server lists, unless the settings name its model. `listed` resolves with the first
 * answer, or without one soon after; it never rejects, so that a start neither fails nor waits with the server.
 */
export function followServedModels({ edge, onListed, logger, everyMs = EVERY_MS }: ServedModelsDeps) {
  const { baseUrl, model } = edge;
  if (baseUrl === undefined || model !== undefined) return { listed: Promise.resolve(), stop: async () => undefined };
  const controller = new AbortController();
  const { signal } = controller;
  const list = async () => onListed(await listServed({ ...edge, baseUrl }, signal));
  const onError = (error: unknown) => {
    if (!signal.aborted) logger.warn({ err: error }, "the edge server does not list its models");
  };
  const loop = keepDoing(list, { everyMs, atMostMs: AT_MOST_MS, onError });
  const first = list().catch(onError);
  return {
    listed: Promise.race([first, delay(START_MS, undefined, { signal, ref: false }).catch(() => undefined)]),
    /** Resolves when the server is not asked any more. */
    stop: async (): Promise<void> => {
      controller.abort();
      await Promise.all([first, loop.stop()]);
    },
  };
}

/** What `GET /models` lists: https://platform.openai.com/docs/api-reference/models/list */
async function listServed(
  { baseUrl, apiKey }: Pick<EdgeSettings, "apiKey"> & { baseUrl: string },
  stop: AbortSignal,
): Promise<ServedModel[]> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(TIMEOUT_MS)]);
  const url = `${baseUrl.replace(/\/+$/, "")}/models`;
  const response = await fetch(url, { headers: bearer(apiKey), redirect: "error", signal });
  const { text } = await readPrefix(response, MAX_BYTES);
  if (!response.ok) throw new Error(`GET /models answered with status ${response.status}`);
  const { data } = listed.parse(tryParseJson(text));
  const models = data.filter(({ id }) => !isRunModel(id)); // models of another Switchyard; here such names mean our own runs
  return [...new Map(models.map((model) => [model.id, model])).values()].slice(0, MAX_MODELS);
}
