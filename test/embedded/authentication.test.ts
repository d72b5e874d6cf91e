import { join } from "node:path";
import { expect } from "chai";
import { Binary, type Document, MongoClient, MongoServerError } from "mongodb";
import { startMongoServer } from "../../src/embedded/mongo/server.ts";
import { commands } from "../../src/embedded/mongo/wire/dispatch.ts";
import { inFolder, quiet } from "./support.ts";

const password = "the password of this test";
/** What a client may ask before it has proved itself. */
const open = ["hello", "isMaster", "ismaster", "ping", "buildInfo", "buildinfo"];

/** A server with a password, and a client that has not proved to know it. */
function withStranger(work: (run: (command: Document) => Promise<number | "ok">, url: string) => Promise<void>) {
  return inFolder(async (folder) => {
    const options = { dataFile: join(folder, "data.sqlite"), socketPath: join(folder, "mongo.sock"), logger: quiet };
    const server = await startMongoServer({ ...options, password });
    const client = new MongoClient(server.url, { serverSelectionTimeoutMS: 5_000, maxPoolSize: 1 });
    const run = (command: Document) =>
      client
        .db("test")
        .command(command)
        .then(
          () => "ok" as const,
          (error: unknown) => (error instanceof MongoServerError ? Number(error.code) : Promise.reject(error)),
        );
    try {
      await work(run, server.url);
    } finally {
      await client.close();
      await server.close();
    }
  });
}

const start = (text: string) => ({ saslStart: 1, mechanism: "SCRAM-SHA-256", payload: new Binary(Buffer.from(text)) });
const go = (text: string) => ({ saslContinue: 1, conversationId: 1, payload: new Binary(Buffer.from(text)) });

describe("a server with a password", () => {
  it("answers an unauthenticated client's hello, and refuses every other command", () =>
    withStranger(async (run) => {
      for (const name of commands.keys()) {
        expect(await run({ [name]: 1 }), name).to.equal(open.includes(name) ? "ok" : 13);
      }
    }));

  it("accepts no invalid proof, and closes the connection after one", () =>
    withStranger(async (run) => {
      const proof = Buffer.alloc(32).toString("base64");
      expect(await run(go(`c=biws,r=mine,p=${proof}`)), "before a start").to.equal(18);
      for (const first of ["", "n,,", "n,,n=switchyard", "n,,n=another,r=mine", "y,,n=switchyard,r=mine"]) {
        expect(await run(start(first)), first).to.equal(18);
      }
      expect(await run({ ...start("n,,n=switchyard,r=mine"), mechanism: "PLAIN" })).to.equal(18);
      for (const last of ["", "c=biws", "c=biws,r=mine,p=", `c=biws,r=mine,p=${proof}`]) {
        expect(await run(start("n,,n=switchyard,r=mine"))).to.equal("ok");
        expect(await run(go(last)), last).to.equal(18);
        expect(await run(go(last)), "again").to.equal(18);
      }
      expect(await run({ find: "things" })).to.equal(13);
    }));

  it("serves the driver that has the password", () =>
    withStranger(async (_, url) => {
      const auth = { username: "switchyard", password };
      const client = new MongoClient(url, { auth, authMechanism: "SCRAM-SHA-256", authSource: "admin" });
      try {
        const things = client.db("test").collection<{ _id: number }>("things");
        await Promise.all(Array.from({ length: 20 }, (_, n) => things.insertOne({ _id: n }))); // several connections
        expect(await things.countDocuments()).to.equal(20);
      } finally {
        await client.close();
      }
    }));
});
