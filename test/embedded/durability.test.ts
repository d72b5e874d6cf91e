import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect } from "chai";
import { type Collection, type Document, MongoClient } from "mongodb";
import { openStorage } from "../../src/embedded/mongo/storage/storage.ts";
import { inFolder, withServer } from "./support.ts";

type Host = { url: string; child: ChildProcess; kill(): Promise<void> };

async function startHost(folder: string): Promise<Host> {
  const script = new URL("./host-process.ts", import.meta.url);
  const child = fork(script, [join(folder, "data.sqlite"), join(folder, "mongo.sock")], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const [message] = await once(child, "message");
  const kill = async () => {
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
  };
  return { url: message.url, child, kill };
}

const writers = 64;
const wanted = 2_000;

/** What was acknowledged to clients: inserted documents, and the last version of each that an update was acknowledged for. */
type Acknowledged = { inserted: Set<string>; versions: Map<string, number> };

/** Writes until the server is gone; kills it once enough writes are acknowledged. */
async function writeUntilKilled(things: Collection<Document>, host: Host): Promise<Acknowledged> {
  const acknowledged: Acknowledged = { inserted: new Set(), versions: new Map() };
  let isDead = false;
  let total = 0;
  const count = () => {
    total++;
    if (total === wanted) void host.kill();
  };
  const write = async (writer: number) => {
    for (let n = 0; !isDead; n++) {
      const _id = `${writer}:${n}` as unknown as Document["_id"];
      await things.insertOne({ _id, writer, n, version: 0, text: "x".repeat(5_000) }); // enough for the log to be copied meanwhile
      acknowledged.inserted.add(String(_id));
      count();
      const filter = { _id, version: 0 };
      const changed = await things.findOneAndUpdate(filter, { $inc: { version: 1 } }, { returnDocument: "after" });
      acknowledged.versions.set(String(_id), changed?.version);
      count();
    }
  };
  const stop = () => {
    isDead = true;
  };
  await Promise.all(Array.from({ length: writers }, (_, writer) => write(writer).catch(stop)));
  return acknowledged;
}

describe("embedded store: a crash of its process", () => {
  it("loses no acknowledged write by kill -9 in the middle of 2,000 concurrent ones, and its indexes agree", function () {
    this.timeout(60_000);
    return inFolder(async (folder) => {
      const host = await startHost(folder);
      const client = new MongoClient(host.url, { maxPoolSize: writers, serverSelectionTimeoutMS: 500 });
      const things = client.db("test").collection<Document>("things");
      await things.createIndexes([{ key: { writer: 1, n: 1 }, unique: true }, { key: { version: 1 } }]);
      const acknowledged = await writeUntilKilled(things, host);
      await client.close();
      expect(acknowledged.inserted.size + acknowledged.versions.size).to.be.at.least(wanted);
      await withServer(folder, async (db) => {
        const stored = new Map(
          (await db.collection<Document>("things").find({}).toArray()).map((one) => [String(one._id), one]),
        );
        const lost = [...acknowledged.inserted].filter((id) => !stored.has(id));
        expect(lost, "acknowledged inserts that are gone").to.deep.equal([]);
        const undone = [...acknowledged.versions].filter(([id, version]) => stored.get(id)?.version !== version);
        expect(undone, "acknowledged updates that are gone").to.deep.equal([]);
        const versions = [...stored.values()].filter(({ version }) => version === 1).length;
        expect(await db.collection("things").countDocuments({ version: 1 })).to.equal(versions);
        const byWriter = db.collection("things").find({ writer: { $gte: 0 } });
        expect(await byWriter.toArray()).to.have.length(stored.size);
      });
    });
  });

  it("refuses a second server on a data file that is in use", () =>
    inFolder(async (folder) => {
      const host = await startHost(folder);
      const second = await withServer(folder, async () => "started").catch((error: unknown) => error);
      await host.kill();
      expect(String(second)).to.match(/locked/);
    }));

  it("waits for the disk at each commit only if it is told to", () =>
    inFolder(async (folder) => {
      const levelOf = (syncWrites: boolean) => {
        const { sqlite, close } = openStorage(join(folder, "data.sqlite"), { syncWrites });
        const level = sqlite.prepare("PRAGMA synchronous").get();
        close();
        return level;
      };
      const [normal, full] = [1, 2]; // https://www.sqlite.org/pragma.html#pragma_synchronous
      expect(levelOf(false)).to.deep.equal({ synchronous: normal });
      expect(levelOf(true)).to.deep.equal({ synchronous: full });
    }));
});
