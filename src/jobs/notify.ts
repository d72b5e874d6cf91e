import { EventEmitter } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import type { JobRecord } from "../store/job-record.ts";
import type { RedisConnections } from "../store/redis/redis.ts";

/** Longest wait until a subscription is made, in ms. */
const SUBSCRIBE_TIMEOUT_MS = 1_000;

export type Notifications = ReturnType<typeof makeNotifications>;

/**
 * Notifications about jobs over Redis' publish and subscribe: one connection a process for all that it listens to, opened
 * at first use. They carry ids only, for the listener to read the record. Losing one costs time, never truth.
 */
export function makeNotifications(redis: RedisConnections, onError: (error: unknown) => void) {
  const changeChannel = (tenantId: string, jobId: string) => `${redis.prefix}:job-changed:${tenantId}:${jobId}`;
  const cancelChannel = `${redis.prefix}:job-cancel`;
  const listeners = new EventEmitter().setMaxListeners(0);
  let subscriber: ReturnType<RedisConnections["subscriber"]> | undefined;

  const connection = () => {
    subscriber ??= redis
      .subscriber()
      .on("message", (channel, message) => listeners.emit(channel, message))
      .on("pmessage", (pattern, channel) => listeners.emit(pattern, channel.slice(channel.lastIndexOf(":") + 1)));
    return subscriber;
  };
  const publish = (channel: string, message: string) => void redis.producer.publish(channel, message).catch(onError);
  const listen = async (channel: string, listener: (message: string) => void): Promise<() => void> => {
    const isFirst = listeners.listenerCount(channel) === 0;
    listeners.on(channel, listener);
    // Redis may be unavailable for long: a listener also polls, so the subscription is not awaited without a limit.
    const late = delay(SUBSCRIBE_TIMEOUT_MS, undefined, { ref: false });
    const isPattern = channel.endsWith("*");
    const subscribe = () => (isPattern ? connection().psubscribe(channel) : connection().subscribe(channel));
    const unsubscribe = () => (isPattern ? connection().punsubscribe(channel) : connection().unsubscribe(channel));
    if (isFirst) await Promise.race([subscribe().catch(onError), late]);
    return () => {
      listeners.off(channel, listener);
      if (listeners.listenerCount(channel) === 0) unsubscribe().catch(onError);
    };
  };
  return {
    /** Notifies those who follow a job that its record has changed. */
    changed: ({ tenantId, _id: jobId }: Pick<JobRecord, "_id" | "tenantId">) =>
      publish(changeChannel(tenantId, jobId), ""),
    /** Tells the worker that runs a job to stop it. */
    cancel: (jobId: string) => publish(cancelChannel, jobId),
    /** Calls `listener` at each change of a job until the result is called; resolves when it is subscribed. */
    onChange: (tenantId: string, jobId: string, listener: () => void) =>
      listen(changeChannel(tenantId, jobId), listener),
    /** Calls `listener` with the id of each job of a tenant that changes; otherwise as `onChange`. */
    onTenantChange: (tenantId: string, listener: (jobId: string) => void) =>
      listen(changeChannel(tenantId, "*"), listener),
    /** Calls `listener` with the id of each job that is to be stopped. */
    onCancel: (listener: (jobId: string) => void) => listen(cancelChannel, listener),
  };
}
