import { createRequire } from "node:module";

type DriverConnection = {
  /** Why it was closed; set before `close` is emitted. */
  error: Error | null;
  once(event: "close", listener: () => void): unknown;
  off(event: "close", listener: () => void): unknown;
  writeCommand(command: unknown, options: unknown): Promise<void>;
};

const { Connection } = createRequire(import.meta.url)("mongodb/lib/cmap/connection.js") as {
  Connection: { prototype: DriverConnection };
};
const { writeCommand } = Connection.prototype;

/**
 * Ends the driver's writes together with their connection, for all connections of this process.
 *
 * A write that the socket does not take at once waits for the socket's `drain` or `error`. A socket that is closed without an
 * error (its server was killed, or the socket's time-out is over) emits neither, so that the operation would wait for ever and
 * keep its place in the pool: seen with 7.8.0 at one in five kills of a busy server. To be taken out when the driver does it.
 */
export function endWritesOnClose(): void {
  Connection.prototype.writeCommand = async function (command, options) {
    const { promise: closed, reject } = Promise.withResolvers<never>();
    const onClose = () => reject(this.error);
    this.once("close", onClose);
    try {
      await Promise.race([writeCommand.call(this, command, options), closed]);
    } finally {
      this.off("close", onClose);
    }
  };
}
