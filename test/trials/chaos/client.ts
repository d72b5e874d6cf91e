import { setTimeout as delay } from "node:timers/promises";

/** Longest wait for one answer, in ms; a call that is cut, or not answered, is repeated. */
const ANSWER_TIMEOUT_MS = 15_000;
/** Wait before a repeat, from and to, in ms. */
const REPEAT_MS = [100, 400] as const;

export type ApiResponse = { status: number; body: unknown };

/** What clients met in a run. */
export type Meetings = {
  /** Answers by status; 0 stands for a call that was cut, or not answered in time. */
  statuses: Map<number, number>;
  /** Answers that no fault explains. */
  strange: string[];
};

/** Failures that are allowed while parts are down; any other 5xx is a fault of ours. */
const allowedFailures = new Set([502, 503, 504]);

export type TenantClient = {
  /** One call. */
  call(method: string, path: string, options?: CallOptions): Promise<ApiResponse>;
  /** Repeats a call under its idempotency key until it is answered for good, or `giveUp` aborts; the last answer. */
  settle(path: string, options: CallOptions & { key: string }): Promise<ApiResponse>;
};
export type CallOptions = { body?: unknown; headers?: Record<string, string> };

/** The client of one tenant, which chooses an API for each call as a load balancer would. */
export function makeTenantClient(options: {
  apiKey: string;
  nextUrl(): string | undefined;
  meetings: Meetings;
  giveUp: AbortSignal;
}): TenantClient {
  const { apiKey, meetings, giveUp } = options;
  const note = (method: string, path: string, { status, body }: ApiResponse) => {
    meetings.statuses.set(status, (meetings.statuses.get(status) ?? 0) + 1);
    if (status >= 500 && !allowedFailures.has(status)) {
      meetings.strange.push(`${method} ${path} → ${status} ${JSON.stringify(body).slice(0, 300)}`);
    }
  };
  const call: TenantClient["call"] = async (method, path, { body, headers } = {}) => {
    const answer = await fetchOnce(options.nextUrl(), method, path, {
      headers: {
        authorization: `Bearer ${apiKey}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    note(method, path, answer);
    return answer;
  };
  return {
    call,
    async settle(path, { key, body, headers }) {
      for (;;) {
        const answer = await call("POST", path, { body, headers: { ...headers, "idempotency-key": key } });
        if (!mayBeRepeated(answer) || giveUp.aborted) return answer;
        const [from, to] = REPEAT_MS;
        await delay(from + Math.random() * (to - from));
      }
    },
  };
}

async function fetchOnce(
  url: string | undefined,
  method: string,
  path: string,
  init: RequestInit,
): Promise<ApiResponse> {
  if (url === undefined) return { status: 0, body: undefined };
  try {
    const response = await fetch(`${url}${path}`, { ...init, method, signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) });
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
    return { status: response.status, body: isJson ? JSON.parse(text) : text };
  } catch {
    return { status: 0, body: undefined }; // the API was killed, or is frozen
  }
}

function mayBeRepeated({ status, body }: ApiResponse): boolean {
  if (status === 0 || status === 429 || status >= 500) return true;
  return status === 409 && JSON.stringify(body).includes("idempotency_in_progress");
}
