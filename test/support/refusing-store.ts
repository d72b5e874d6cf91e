import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BSON, type Document } from "mongodb";
import { startMongoServer } from "../../src/embedded/mongo/server.ts";
import { frameReply, makeInbox, readRequest } from "../../src/embedded/mongo/wire/wire.ts";
import { makeLogger } from "../../src/observe/logger.ts";

/** A refusal in the words of MongoDB. */
export type Refusal = { code: number; codeName: string; errmsg: string };

export type RefusingStore = {
  url: string;
  /** What every write is answered from now on; undefined: they are taken again. */
  rejectWrites(refusal: Refusal | undefined): void;
  /** What is answered in the store's place from now on: a reply, or after so many ms its own; undefined: its own at once. */
  answer(rule: (body: Document) => Document | number | undefined): void;
  close(): Promise<void>;
};

const writes = new Set(["insert", "update", "delete", "findAndModify"]);

/** A store on loopback that can refuse writes as MongoDB does: for refusals that the embedded one has no cause for. */
export async function startRefusingStore(): Promise<RefusingStore> {
  const folder = await mkdtemp(join(tmpdir(), "switchyard-refusing-"));
  const socketPath = join(folder, "mongo.sock");
  const logger = makeLogger({ level: "silent", name: "test" });
  const store = await startMongoServer({ dataFile: join(folder, "store.sqlite"), socketPath, logger });
  let refusal: Refusal | undefined;
  let ruled: (body: Document) => Document | number | undefined = () => undefined;
  const server = createServer((socket) => {
    const onward = connect(socketPath);
    for (const one of [socket, onward]) one.on("error", () => one.destroy());
    onward.on("close", () => socket.destroy());
    socket.on("close", () => onward.destroy());
    onward.pipe(socket);
    const inbox = makeInbox();
    socket.on("data", (bytes) => {
      inbox.add(bytes);
      for (let message = inbox.take(); message !== undefined; message = inbox.take()) {
        const request = readRequest(message);
        const isRejected = refusal !== undefined && writes.has(Object.keys(request.body)[0] ?? "");
        const rule = isRejected ? { ok: 0, ...refusal } : ruled(request.body);
        const whole = message;
        if (typeof rule === "number") setTimeout(() => onward.write(whole), rule).unref();
        else if (rule) socket.write(frameReply(request, BSON.serialize(rule), 1));
        else onward.write(message);
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the store has no port");
  return {
    url: `mongodb://127.0.0.1:${address.port}/?directConnection=true`,
    rejectWrites(next) {
      refusal = next;
    },
    answer(rule) {
      ruled = rule;
    },
    async close() {
      const closed = once(server.close(), "close");
      await store.close();
      await closed;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
