import { Socket } from "node:net";
import { PerformanceObserver } from "node:perf_hooks";

type Traffic = { messages: number; sockets: Socket[] };

/**
 * Answers over IPC what this process has sent to the store and to Redis until now (messages, and bytes both ways), and how
 * often and how long V8 stopped it to collect garbage, in ms, with the sum of the squares of these times. To be called before anything connects.
 */
export function answerWorkUsage(): void {
  const traffic: Record<"store" | "redis", Traffic> = {
    store: { messages: 0, sockets: [] },
    redis: { messages: 0, sockets: [] },
  };
  const storeUrl = decodeURIComponent(process.env.MONGODB_URL ?? "");
  const redisUrl = process.env.REDIS_URL ?? "";
  watchSockets((path) => {
    if (storeUrl.includes(path)) return traffic.store;
    return redisUrl.startsWith(path) ? traffic.redis : undefined;
  });
  const pauses = { count: 0, ms: 0, squares: 0 };
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) {
      pauses.count += 1;
      pauses.ms += duration;
      pauses.squares += duration ** 2;
    }
  }).observe({ entryTypes: ["gc"] });
  process.on("message", ({ type }: { type: string }) => {
    if (type !== "work") return;
    const sum = ({ messages, sockets }: Traffic) => {
      const bytes = sockets.reduce((total, { bytesRead, bytesWritten }) => total + bytesRead + bytesWritten, 0);
      return { messages, bytes };
    };
    process.send?.({ type: "answer", store: sum(traffic.store), redis: sum(traffic.redis), pauses });
  });
}

/** Counts what is written to sockets on the file system; `find` chooses where, by the path. */
function watchSockets(find: (path: string) => Traffic | undefined): void {
  const { connect, write } = Socket.prototype;
  Socket.prototype.connect = function (this: Socket, ...args: unknown[]) {
    const [first] = Array.isArray(args[0]) ? args[0] : args;
    const path = typeof first === "string" ? first : (first as { path?: unknown } | undefined)?.path;
    const counted = typeof path === "string" ? find(path) : undefined;
    const socket = Reflect.apply(connect, this, args);
    if (!counted) return socket;
    counted.sockets.push(this);
    this.write = function (this: Socket, ...parts: unknown[]) {
      counted.messages += 1;
      return Reflect.apply(write, this, parts);
    } as Socket["write"]; // only now: connecting sets it
    return socket;
  } as Socket["connect"];
}
