import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { jittered } from "../../lib/jitter.ts";
import { RefusedByServer, type Remote } from "./mcp-client.ts";

/** A task at an MCP server, of either era: its server does the work, and is asked for the state until that has ended. */

/** Longest time of a call at a server that makes a task of it, in ms. */
export const TASK_TIMEOUT_MS = 300_000;

/** Bounds on how often a task is asked for, whatever its server says, in ms. */
const LEAST_POLL_MS = 100;
const MOST_POLL_MS = 10_000;
const DEFAULT_POLL_MS = 1_000;
/** Polls in a row that may fail because the server cannot be reached: the task outlives that. */
const MAX_FAILED_POLLS = 3;
/** Longest time of one request about a task, in ms. */
const REQUEST_TIMEOUT_MS = 15_000;
const CANCEL_TIMEOUT_MS = 2_000;

/** What a tool of a server returned, as far as a run reads it. Kinds of content may come that are not known here. */
export const remoteResultSchema = z.looseObject({
  resultType: z.string().optional().catch(undefined),
  content: z.array(z.unknown()).optional(),
  structuredContent: z.unknown().optional(),
  isError: z.boolean().optional().catch(undefined),
});
export type RemoteResult = z.output<typeof remoteResultSchema>;

/** Before 2026-07-28 the interval is `pollInterval`, and the result comes by a request of its own. */
const taskSchema = z.looseObject({
  taskId: z.string(),
  status: z.enum(["working", "input_required", "completed", "failed", "cancelled"]),
  statusMessage: z.string().optional(),
  pollInterval: z.number().optional(),
  pollIntervalMs: z.number().optional(),
  result: remoteResultSchema.optional(),
  error: z.looseObject({ message: z.string() }).optional(),
});
type Task = z.output<typeof taskSchema>;

type Call = { signal: AbortSignal; headers: Readonly<Record<string, string>> };

/**
 * The result of a tool's call that may become a task; before 2026-07-28 it has to be asked for as one.
 * @throws the signal's reason; RefusedByServer; an error that says why the task has no result.
 */
export async function callInTask(
  remote: Remote,
  params: Readonly<Record<string, unknown>>,
  { signal, headers }: Call,
): Promise<RemoteResult> {
  const { isStateless, request } = remote;
  const asked = isStateless ? params : { ...params, task: { ttl: 2 * TASK_TIMEOUT_MS } };
  const made = await request("tools/call", asked, { signal, headers });
  if (isStateless && made.resultType !== "task") return toResult(made);
  const created = taskSchema.parse(isStateless ? made : made.task);
  const ended = await followTask(remote, created, signal);
  const why = ended.error?.message ?? ended.statusMessage;
  if (isStateless && ended.status === "completed") return toResult(ended.result);
  if (isStateless || ended.status === "cancelled") throw new Error(why ?? `The task is ${ended.status}.`);
  const within = AbortSignal.any([signal, AbortSignal.timeout(REQUEST_TIMEOUT_MS)]);
  // Of a task that failed too, the result says why.
  return await request("tasks/result", { taskId: ended.taskId }, { signal: within }).then(
    toResult,
    (error: unknown) => {
      throw ended.status === "failed" && why ? new Error(why) : error;
    },
  );
}

function toResult(value: unknown): RemoteResult {
  const result = remoteResultSchema.parse(value);
  if (result.resultType === "input_required")
    throw new Error("The tool asks for a person's input, which an agent cannot give.");
  return result;
}

/**
 * The state in which a task ended. One that is not waited for any more is cancelled: when the signal aborts, when the task asks
 * for input, and when its server stays unavailable.
 * @throws the signal's reason; an error for a task that asks for input; the last error of the server.
 */
async function followTask({ request }: Remote, created: Task, signal: AbortSignal): Promise<Task> {
  const named = { taskId: created.taskId };
  let state = created;
  let failed = 0;
  try {
    while (state.status === "working") {
      const asked = state.pollIntervalMs ?? state.pollInterval ?? DEFAULT_POLL_MS;
      const pollMs = Math.min(Math.max(asked, LEAST_POLL_MS), MOST_POLL_MS);
      await delay(failed === 0 ? pollMs : jittered(2 * pollMs), undefined, { signal });
      try {
        const within = AbortSignal.any([signal, AbortSignal.timeout(REQUEST_TIMEOUT_MS)]);
        state = taskSchema.parse(await request("tasks/get", named, { signal: within }));
        failed = 0;
      } catch (error) {
        failed += 1;
        if (signal.aborted || error instanceof RefusedByServer || failed > MAX_FAILED_POLLS) throw error;
      }
    }
    if (state.status !== "input_required") return state;
    throw new Error("The task asks for a person's input, which an agent cannot give. It was cancelled.");
  } catch (error) {
    await request("tasks/cancel", named, { signal: AbortSignal.timeout(CANCEL_TIMEOUT_MS) }).catch(() => undefined); // it may have ended
    throw error;
  }
}
