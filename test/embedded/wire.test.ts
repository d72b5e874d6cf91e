import { once } from "node:events";
import { stat } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { expect } from "chai";
import { BSON, type Document } from "mongodb";
import { inFolder, startIn, withServer } from "./support.ts";

const opMsg = 2013;

function message(
  sections: Buffer,
  options: { flags?: number; opCode?: number; length?: number; tail?: Buffer } = {},
): Buffer {
  const header = Buffer.alloc(20);
  const bytes = Buffer.concat([header, sections, options.tail ?? Buffer.alloc(0)]);
  bytes.writeInt32LE(options.length ?? bytes.length, 0);
  bytes.writeInt32LE(77, 4);
  bytes.writeInt32LE(options.opCode ?? opMsg, 12);
  bytes.writeUInt32LE(options.flags ?? 0, 16);
  return bytes;
}

const bodySection = (body: Document) => Buffer.concat([Buffer.from([0]), BSON.serialize(body)]);
const ping = bodySection({ ping: 1, $db: "admin" });

async function open(folder: string): Promise<Socket> {
  const socket = connect(join(folder, "mongo.sock"));
  await once(socket, "connect");
  return socket;
}

/** The next answer's body. */
async function answer(socket: Socket): Promise<Document> {
  let bytes = Buffer.alloc(0);
  while (bytes.length < 16 || bytes.length < bytes.readInt32LE(0)) {
    const [chunk] = await once(socket, "data");
    bytes = Buffer.concat([bytes, chunk]);
  }
  expect(bytes.readInt32LE(8), "the answer's responseTo").to.equal(77);
  return BSON.deserialize(bytes.subarray(bytes.readInt32LE(12) === opMsg ? 21 : 36));
}

const legacyHello = () => {
  const namespace = Buffer.from("admin.$cmd\0");
  const numbers = Buffer.alloc(8);
  numbers.writeInt32LE(-1, 4);
  const query = Buffer.concat([namespace, numbers, BSON.serialize({ ismaster: 1, helloOk: true })]);
  return message(query, { opCode: 2004 });
};

/** Bytes that are no message, each with what is wrong about it. */
const malformed: [string, Buffer][] = [
  ["a length of zero", message(ping, { length: 0 })],
  ["a negative length", message(ping, { length: -5 })],
  ["a length over the limit", message(ping, { length: 48_000_001 })],
  ["an operation that is not spoken", message(ping, { opCode: 2010 })],
  ["a required flag that is unknown", message(ping, { flags: 4 })],
  ["a section of unknown kind", message(Buffer.concat([Buffer.from([9]), ping.subarray(1)]))],
  [
    "a body that claims more bytes than there are",
    message(Buffer.concat([Buffer.from([0, 255, 255, 0, 0]), ping.subarray(5)])),
  ],
  ["BSON that is broken inside", message(Buffer.concat([ping.subarray(0, 5), Buffer.from([0x99]), ping.subarray(6)]))],
  ["no section", message(Buffer.alloc(0))],
  ["two bodies", message(Buffer.concat([ping, ping]))],
  ["a sequence without a name", message(Buffer.concat([ping, Buffer.from([1, 9, 0, 0, 0, 65, 65, 65, 65, 65])]))],
  ["a checksum, which no driver sends", message(ping, { flags: 1, tail: Buffer.alloc(4) })],
  ["bytes of another protocol", Buffer.from("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")],
];

describe("embedded store: wire protocol", () => {
  it(`closes the connection that sends ${malformed.map(([title]) => title).join(", ")}; and no other`, () =>
    inFolder((folder) =>
      withServer(folder, async (db) => {
        for (const [title, bytes] of malformed) {
          await db.command({ ping: 1 });
          const socket = await open(folder);
          socket.on("error", () => undefined); // a reset is a close too
          socket.write(bytes);
          await once(socket, "close");
          expect(await db.command({ ping: 1 }), title).to.include({ ok: 1 });
        }
      }),
    ));

  it("answers a legacy hello, and a message that comes byte by byte", () =>
    inFolder((folder) =>
      withServer(folder, async () => {
        const socket = await open(folder);
        socket.write(legacyHello());
        expect(await answer(socket)).to.include({ ismaster: true, maxBsonObjectSize: 16_777_216, ok: 1 });
        for (const byte of message(ping)) socket.write(Buffer.from([byte]));
        expect(await answer(socket)).to.deep.equal({ ok: 1 });
        socket.destroy();
      }),
    ));

  it("refuses documents that are nested too deeply or hold broken text, and keeps serving", () =>
    inFolder((folder) =>
      withServer(folder, async (db) => {
        const nested = (depth: number): Document => (depth === 0 ? {} : { a: nested(depth - 1) });
        const things = db.collection<Document>("things");
        expect((await things.insertOne(nested(150))).acknowledged).to.equal(true);
        for (const depth of [200, 3_000]) {
          const refusal = await things.insertOne(nested(depth)).catch((error: unknown) => error);
          expect(refusal).to.include({ code: 15 });
        }
        const socket = await open(folder);
        const insert = bodySection({ insert: "things", documents: [{ text: "@@@@" }], $db: "test" });
        insert.fill(0xff, insert.indexOf("@@@@"), insert.indexOf("@@@@") + 4);
        socket.write(message(insert));
        expect((await answer(socket)).writeErrors?.[0]).to.include({ index: 0, code: 22 });
        socket.destroy();
        expect(await things.countDocuments()).to.equal(1);
      }),
    ));

  it("accepts a document sequence, and sends no reply to an unacknowledged write", () =>
    inFolder((folder) =>
      withServer(folder, async (db) => {
        const socket = await open(folder);
        const documents = Buffer.concat([BSON.serialize({ _id: 1 }), BSON.serialize({ _id: 2 })]);
        const name = Buffer.from("documents\0");
        const size = Buffer.alloc(4);
        size.writeInt32LE(4 + name.length + documents.length);
        const insert = bodySection({ insert: "things", $db: "test" });
        const sequence = Buffer.concat([Buffer.from([1]), size, name, documents]);
        socket.write(message(Buffer.concat([insert, sequence]), { flags: 2 }));
        socket.write(message(ping));
        expect(await answer(socket), "the first answer is the ping's").to.deep.equal({ ok: 1 });
        expect(await db.collection("things").countDocuments()).to.equal(2);
        socket.destroy();
      }),
    ));

  it("reads results larger than one answer in batches", () =>
    inFolder((folder) =>
      withServer(folder, async (db) => {
        const text = "x".repeat(3 * 1024 * 1024);
        for (let n = 0; n < 8; n++) await db.collection("large").insertOne({ n, text });
        const found = await db.collection("large").find({}).sort({ n: 1 }).toArray();
        expect(found.map(({ n }) => n)).to.deep.equal([0, 1, 2, 3, 4, 5, 6, 7]);
      }),
    ));

  it("opens its socket to the owner alone", () =>
    inFolder(async (folder) => {
      const server = await startIn(folder);
      const { mode } = await stat(join(folder, "mongo.sock"));
      await server.close();
      expect(mode & 0o777).to.equal(0o600);
    }));
});
