import { join } from "node:path";
import { expect } from "chai";
import { BSON, type Document } from "mongodb";
import { decodeReceived } from "../../src/embedded/mongo/bson/codec.ts";
import { openEngine } from "../../src/embedded/mongo/commands/command.ts";
import { type Dispatcher, makeDispatcher } from "../../src/embedded/mongo/wire/dispatch.ts";
import { inFolder, quiet } from "./support.ts";

/** Hands a command to the server as a connection does; the answer comes once it is committed, or has failed. */
function send(dispatcher: Dispatcher, command: Document): Promise<Document> {
  const body = decodeReceived(
    BSON.serialize({ ...command, $db: "test" }),
    command.insert ? { documents: true } : undefined,
  );
  return new Promise((resolve) => {
    const request = { requestId: 1, body, isSilent: false, isLegacy: false };
    dispatcher.dispatch(request, { connectionId: 1, send: (reply) => resolve(BSON.deserialize(reply)) });
  });
}

const insert = (...documents: Document[]) => ({ insert: "things", documents });

describe("embedded store: a write that the disk refuses", () => {
  it("is not acknowledged, and leaves nothing; the others of its commit do not fail with it, and the server keeps serving", () =>
    inFolder(async (folder) => {
      const engine = openEngine({ dataFile: join(folder, "data.sqlite"), logger: quiet });
      const dispatcher = makeDispatcher(engine);
      const things = { createIndexes: "things", indexes: [{ key: { n: 1 }, name: "n_1", unique: true }] };
      expect(await send(dispatcher, things)).to.include({ ok: 1 });
      expect(await send(dispatcher, insert({ _id: 0, n: 0 }, { _id: 1, n: 1 }))).to.include({ ok: 1, n: 2 });
      const pages = engine.storage.sqlite.prepare("PRAGMA page_count").get()?.page_count;
      const limitPages = (count: unknown) => engine.storage.sqlite.exec(`PRAGMA max_page_count = ${count}`);
      limitPages(pages); // stands in for a disk that is full
      const large = { _id: 2, n: 2, text: "x".repeat(1_000_000) };
      const remove = { delete: "things", deletes: [{ q: { _id: 1 }, limit: 1 }] };
      const sent = [remove, { insert: "others", documents: [{}] }, insert(large), { ping: 1 }];
      const answers = await Promise.all(sent.map((command) => send(dispatcher, command)));
      expect(answers.map(({ ok, n, codeName }) => codeName ?? n ?? ok)).to.deep.equal([
        1,
        "OutOfDiskSpace",
        "OutOfDiskSpace",
        1,
      ]);
      limitPages(1_000_000);
      const { cursor } = await send(dispatcher, { find: "things", filter: {}, singleBatch: true });
      expect(cursor.firstBatch).to.deep.equal([{ _id: 0, n: 0 }]);
      expect(engine.catalog.list().map(({ name }) => name)).to.deep.equal(["things"]);
      expect(await send(dispatcher, insert({ _id: 1, n: 1 }, large))).to.include({ ok: 1, n: 2 });
      const indexed = await send(dispatcher, { find: "things", filter: { n: { $gte: 0 } }, singleBatch: true });
      expect(indexed.cursor.firstBatch).to.have.length(3);
      dispatcher.flush();
      engine.storage.close();
    }));
});
