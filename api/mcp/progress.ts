import type { JobRecord } from "../../src/store/job-record.ts";
import { isFinal } from "../../src/store/job-state.ts";
import type { HandlerInput, JsonReply, Reply, StreamReply } from "../route.ts";
import { isObject, type RpcId, type RpcResponse, rpcCodes, rpcError } from "./json-rpc.ts";

/** What a client gives a call by to be notified of its progress. */
type ProgressToken = string | number;

/** The token of a call whose client reads a stream; undefined when it wants no notifications. */
export function progressTokenOf(
  { header }: Pick<HandlerInput, "header">,
  { _meta: meta }: Readonly<Record<string, unknown>>,
): ProgressToken | undefined {
  const token = isObject(meta) ? meta.progressToken : undefined;
  const isToken = typeof token === "string" || Number.isInteger(token);
  return isToken && header("accept")?.includes("text/event-stream") ? (token as ProgressToken) : undefined;
}

type Call<R extends { response: RpcResponse }> = {
  id: RpcId;
  token: ProgressToken;
  /** Makes the call; `onJob` is given its job at each change. */
  respond(onJob: (job: JobRecord) => void): Promise<R>;
  /** The response of a call that ends without any progress. */
  toReply(responded: R): JsonReply;
};

/**
 * Makes a call and notifies its client of each step of its job. The response is a stream from the first step on; of a call
 * without steps it is as any other.
 */
export async function callWithProgress<R extends { response: RpcResponse }>(call: Call<R>): Promise<Reply> {
  const { id, token, respond, toReply } = call;
  let pending: object[] = [];
  let lastId = -1;
  let isOver = false;
  let change = Promise.withResolvers<void>();
  const notify = (progress: number, message: string) => {
    const params = { progressToken: token, progress, message };
    pending.push({ jsonrpc: "2.0", method: "notifications/progress", params });
    lastId = progress;
    change.resolve();
  };
  const onJob = (job: JobRecord) => {
    for (const { id: stepId, data } of job.steps ?? []) if (stepId > lastId) notify(stepId, toMessage(data));
    if (job.lastEventId > lastId && !isFinal(job.status) && job.progress.done > 0)
      notify(job.lastEventId, job.progress.stage);
  };
  const responding = respond(onJob);
  const end = () => {
    isOver = true;
    change.resolve();
  };
  responding.then(end, end);
  await change.promise;
  if (pending.length === 0) return toReply(await responding);
  async function* events() {
    for (;;) {
      change = Promise.withResolvers();
      const ready = pending;
      pending = [];
      if (ready.length > 0) yield ready.map((data) => ({ data }));
      if (pending.length > 0) continue;
      if (isOver) break;
      await change.promise;
    }
    yield [{ data: (await responding).response }];
  }
  const toErrorEvent: StreamReply["toErrorEvent"] = (error) => ({
    data: rpcError(id, rpcCodes.internal, error.message, error),
  });
  return { status: 200, events: events(), toErrorEvent };
}

/** What a step reports of itself: its name, and what became of it. */
function toMessage({ event, id, type, status, role, done, total }: Record<string, unknown>): string {
  const name = id ?? role ?? type;
  const how = status ?? (typeof total === "number" ? `${done} of ${total}` : id && event);
  const words = [name ?? event, how].filter((word) => typeof word === "string");
  return words.join(": ").slice(0, 200) || "step";
}
