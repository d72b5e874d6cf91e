import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export type TcpProxy = {
  port: number;
  /** Where new connections lead; those that are there stay where they are. */
  leadTo(port: number): void;
  /**
   * Connections on which the client has sent this carry nothing more, in either direction, and stay open. New connections do
   * the same until `leadTo`.
   */
  blackHole(sent?: RegExp): void;
  /** Holds what a client sends with this in it for some ms, the next time after `skip` times; what follows waits behind it. */
  holdOnce(options: { sent: RegExp; skip: number; ms: number }): void;
  close(): Promise<void>;
};

type Pair = { inner: Socket; outer: Socket | undefined; said: string; isDead: boolean };

/** A name for the servers behind it, with connections that hang, or lead elsewhere, as those of a network do. */
export async function startTcpProxy(target: number): Promise<TcpProxy> {
  let current: number | undefined = target;
  let hold = { sent: /^/, skip: Number.POSITIVE_INFINITY, ms: 0 };
  const pairs = new Set<Pair>();
  const timers = new Set<NodeJS.Timeout>();
  const later = (ms: number) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(() => {
        timers.delete(timer);
        resolve();
      }, ms);
      timers.add(timer);
    });
  const holdMs = (bytes: Buffer): number => {
    if (!hold.sent.test(bytes.toString("latin1"))) return 0;
    hold.skip -= 1;
    return hold.skip === -1 ? hold.ms : 0;
  };
  const server = createServer((inner) => {
    const outer = current === undefined ? undefined : connect(current, "127.0.0.1");
    const pair: Pair = { inner, outer, said: "", isDead: outer === undefined };
    pairs.add(pair);
    let sending = Promise.resolve();
    inner.on("data", (bytes) => {
      pair.said = (pair.said + bytes.toString("latin1")).slice(-1_000);
      const ms = holdMs(bytes);
      sending = sending.then(async () => {
        if (ms > 0) await later(ms);
        if (!pair.isDead && outer && !outer.destroyed) outer.write(bytes);
      });
    });
    const end = () => {
      inner.destroy();
      outer?.destroy();
      pairs.delete(pair);
    };
    inner.on("error", end).on("close", end);
    outer?.on("data", (bytes) => pair.isDead || inner.write(bytes));
    outer?.on("error", end).on("close", () => pair.isDead || end());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port, // of a TCP server that listens
    leadTo(port) {
      current = port;
    },
    blackHole(sent = /^/) {
      current = undefined;
      for (const pair of pairs) pair.isDead ||= sent.test(pair.said);
    },
    holdOnce(options) {
      hold = { ...options };
    },
    async close() {
      for (const timer of timers) clearTimeout(timer);
      for (const { inner, outer } of pairs) for (const socket of [inner, outer]) socket?.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
