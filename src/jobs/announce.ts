import type { RedisConnections } from "../redis.ts";

export type Announcements = {
  /** Tells whoever follows a job that its record has changed. Losing it costs time, never truth. */
  changed(jobId: string): void;
  /** Tells the worker that runs a job to stop it. */
  cancel(jobId: string): void;
  /** Calls `listener` at each change of a job until the result is called; resolves when it is subscribed. */
  onChange(jobId: string, listener: () => void): Promise<() => void>;
  /** Calls `listener` with the id of each job that shall be stopped. */
  onCancel(listener: (jobId: string) => void): Promise<() => void>;
};

/**
 * Announcements about jobs over Redis' publish and subscribe: one connection a process for all that it listens to, opened
 * at first use. They carry ids only; who hears one reads the record.
 */
export function makeAnnouncements(redis: RedisConnections, onError: (error: unknown) => void): Announcements {
  const changeChannel = (jobId: string) => `${redis.prefix}:job-changed:${jobId}`;
  const cancelChannel = `${redis.prefix}:job-cancel`;
  const listeners = new Map<string, Set<(message: string) => void>>();
  let subscriber: ReturnType<RedisConnections["subscriber"]> | undefined;

  const connection = () => {
    if (subscriber) return subscriber;
    subscriber = redis.subscriber();
    subscriber.on("message", (channel, message) => {
      for (const listener of listeners.get(channel) ?? []) listener(message);
    });
    return subscriber;
  };
  const publish = (channel: string, message: string) => void redis.producer.publish(channel, message).catch(onError);
  const listen = async (channel: string, listener: (message: string) => void) => {
    const there = listeners.get(channel);
    if (there) there.add(listener);
    else listeners.set(channel, new Set([listener]));
    const stop = () => {
      const left = listeners.get(channel);
      left?.delete(listener);
      if (!left || left.size > 0) return;
      listeners.delete(channel);
      connection().unsubscribe(channel).catch(onError);
    };
    // Redis may be away for long: whoever listens also polls, so the subscription is not waited for without a limit.
    if (!there) await Promise.race([connection().subscribe(channel).catch(onError), pause(SUBSCRIBE_TIMEOUT_MS)]);
    return stop;
  };
  return {
    changed: (jobId) => publish(changeChannel(jobId), ""),
    cancel: (jobId) => publish(cancelChannel, jobId),
    onChange: (jobId, listener) => listen(changeChannel(jobId), listener),
    onCancel: (listener) => listen(cancelChannel, listener),
  };
}

/** Longest wait for a subscription to stand, in ms. */
const SUBSCRIBE_TIMEOUT_MS = 1_000;

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
