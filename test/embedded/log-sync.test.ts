import { copyFileSync, fdatasync, fstatSync, truncateSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { type Document, MongoClient } from "mongodb";
import { startMongoServer } from "../../src/embedded/mongo/server.ts";
import type { LogSyncOptions } from "../../src/embedded/mongo/storage/log-sync.ts";
import { pollUntil } from "../support/poll-until.ts";
import { inFolder, quiet, withServer } from "./support.ts";

type Sync = NonNullable<LogSyncOptions["sync"]>;

/** A server that waits for this disk, and a client of it. */
async function onDisk(
  folder: string,
  logSync: LogSyncOptions,
  work: (client: MongoClient, close: () => Promise<void>) => Promise<void>,
): Promise<void> {
  const dataFile = join(folder, "data.sqlite");
  const server = await startMongoServer({ dataFile, socketPath: join(folder, "mongo.sock"), logSync, logger: quiet });
  const client = new MongoClient(server.url, { maxPoolSize: 32, serverSelectionTimeoutMS: 2_000 });
  try {
    await work(client, () => server.close());
  } finally {
    await client.close();
    await server.close();
  }
}

const never = (): void => expect.fail("the disk has failed");

/** A disk that syncs when it is told to. */
function heldDisk() {
  const calls: (() => void)[] = [];
  const sync: Sync = (file, callback) => {
    calls.push(() => fdatasync(file, callback));
  };
  return { calls, sync };
}

describe("embedded store: a log that is synced", function () {
  this.timeout(20_000);

  it("acknowledges a write once the disk has it, and lets reads by meanwhile", () =>
    inFolder(async (folder) => {
      const { calls, sync } = heldDisk();
      let isHeld = false;
      const now: Sync = (file, callback) => (isHeld ? sync(file, callback) : fdatasync(file, callback));
      await onDisk(folder, { sync: now, onFailure: never }, async (client) => {
        const things = client.db("test").collection<Document>("things");
        await things.insertOne({ n: 0 });
        isHeld = true;
        let isAcknowledged = false;
        const writing = things.insertOne({ n: 1 }).then(() => {
          isAcknowledged = true;
        });
        await pollUntil(() => calls.length === 1, { timeoutMs: 5_000, what: "a write that waits for the disk" });
        expect(await things.countDocuments({ n: { $gte: 0 } })).to.equal(2);
        expect(isAcknowledged).to.equal(false);
        isHeld = false;
        calls[0]?.();
        await writing;
      });
    }));

  it("loses no acknowledged write when what the disk does not have yet is gone", () =>
    inFolder(async (folder) => {
      const acknowledged = new Set<string>();
      const after = join(folder, "after");
      await mkdir(after);
      let [syncs, onDiskBytes] = [0, 0];
      let survivors: Set<string> | undefined;
      /** What a loss of power leaves: the log as far as it was there when the last call that has returned began. */
      const losePower = () => {
        survivors = new Set(acknowledged);
        copyFileSync(join(folder, "data.sqlite"), join(after, "data.sqlite"));
        copyFileSync(join(folder, "data.sqlite-wal"), join(after, "data.sqlite-wal"));
        truncateSync(join(after, "data.sqlite-wal"), onDiskBytes);
      };
      const slow: Sync = (file, callback) => {
        const { size } = fstatSync(file);
        syncs += 1;
        setTimeout(() => {
          if (syncs === 20) losePower();
          onDiskBytes = size;
          fdatasync(file, callback);
        }, 20);
      };
      await onDisk(folder, { sync: slow, onFailure: never }, async (client) => {
        const things = client.db("test").collection<Document>("things");
        const write = async (writer: number) => {
          for (let n = 0; survivors === undefined && n < 1_000; n += 1) {
            const _id = `${writer}:${n}`;
            await things.insertOne({ _id: _id as unknown as Document["_id"], text: "x".repeat(500) });
            acknowledged.add(_id);
          }
        };
        await Promise.all(Array.from({ length: 16 }, (_, writer) => write(writer)));
      });
      await withServer(after, async (db) => {
        const stored = new Set((await db.collection("things").find({}).toArray()).map(({ _id }) => String(_id)));
        expect(survivors?.size).to.be.above(16);
        expect([...(survivors ?? [])].filter((id) => !stored.has(id))).to.deep.equal([]);
      });
    }));

  it("shares one wait among all writes that come during another", () =>
    inFolder(async (folder) => {
      const { calls, sync } = heldDisk();
      await onDisk(folder, { sync, onFailure: never }, async (client) => {
        const things = client.db("test").collection<Document>("things");
        const first = things.insertOne({ n: 0 });
        await pollUntil(() => calls.length === 1, { timeoutMs: 5_000, what: "the first write" });
        const others = Array.from({ length: 20 }, (_, n) => things.insertOne({ n }));
        await pollUntil(async () => (await things.countDocuments({ n: { $gte: 0 } })) === 21, {
          timeoutMs: 5_000,
          what: "writes that are committed",
        });
        calls[0]?.();
        await first;
        await pollUntil(() => calls.length === 2, { timeoutMs: 5_000, what: "the wait of the others" });
        calls[1]?.();
        await Promise.all(others);
        expect(calls).to.have.length(2);
      });
    }));

  it("reports a disk that fails, and acknowledges nothing", () =>
    inFolder(async (folder) => {
      const failures: Error[] = [];
      let hasFailed = false;
      const sync: Sync = (file, callback) => {
        if (hasFailed) callback(new Error("EIO"));
        else fdatasync(file, callback);
      };
      await onDisk(folder, { sync, onFailure: (error) => failures.push(error) }, async (client, close) => {
        const things = client.db("test").collection<Document>("things");
        await things.insertOne({ n: 0 });
        hasFailed = true;
        let isAcknowledged = false;
        const writing = things.insertOne({ n: 1 }).then(
          () => {
            isAcknowledged = true;
          },
          () => undefined,
        );
        await pollUntil(() => failures.length === 1, { timeoutMs: 5_000, what: "the failure" });
        expect(isAcknowledged).to.equal(false);
        await close();
        await writing;
      });
    }));

  it("acknowledges what waits when the store is closed", () =>
    inFolder(async (folder) => {
      const { calls, sync } = heldDisk();
      await onDisk(folder, { sync, onFailure: never }, async (client, close) => {
        const writing = client.db("test").collection("things").insertOne({ n: 1 });
        await pollUntil(() => calls.length === 1, { timeoutMs: 5_000, what: "a write that waits for the disk" });
        await close();
        await writing;
      });
    }));
});
