import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect } from "chai";
import type { Collection, Db, Document } from "mongodb";
import { pollUntil } from "../support/poll-until.ts";
import { inFolder, withServer } from "./support.ts";

const MB = 1_000_000;
const sizeOf = (folder: string) => statSync(join(folder, "data.sqlite")).size;
const text = "x".repeat(50_000);

/** How many pages the log has: it is not shortened when it is restarted. */
function pagesOf(folder: string): number {
  const file = new DatabaseSync(join(folder, "data.sqlite"));
  const { log } = file.prepare("PRAGMA wal_checkpoint(NOOP)").get() ?? {};
  file.close();
  return Number(log);
}

/** Writes this number of bytes, in commits of 1 MB. */
async function write(things: Collection<Document>, bytes: number): Promise<void> {
  for (let written = 0; written < bytes; written += MB) {
    await things.insertMany(Array.from({ length: MB / text.length }, () => ({ text })));
  }
}

describe("embedded store: its log", function () {
  this.timeout(30_000);

  const inStore = (work: (things: Collection<Document>, folder: string, db: Db) => Promise<void>) =>
    inFolder((folder) => withServer(folder, (db) => work(db.collection<Document>("things"), folder, db)));

  it("is copied into the data file and restarted while the store is written", () =>
    inStore(async (things, folder) => {
      await write(things, 20 * MB);
      let [before, pages] = [0, pagesOf(folder)];
      const isRestarted = async () => {
        await write(things, MB);
        [before, pages] = [pages, pagesOf(folder)];
        return pages < before;
      };
      // On a slow disk that is once in 128 MB.
      await pollUntil(isRestarted, { timeoutMs: 25_000, what: "a log that is restarted" });
      expect(sizeOf(folder), "the data file").to.be.above(8 * MB);
    }));

  it("is empty after the store has closed, and the data file has everything", () =>
    inFolder(async (folder) => {
      await withServer(folder, (db) => write(db.collection<Document>("things"), 10 * MB));
      expect(existsSync(join(folder, "data.sqlite-wal"))).to.equal(false);
      const file = new DatabaseSync(join(folder, "data.sqlite"), { readOnly: true });
      const { ok } = file.prepare("SELECT integrity_check AS ok FROM pragma_integrity_check").get() ?? {};
      file.close();
      expect(ok).to.equal("ok");
      await withServer(folder, async (db) => expect(await db.collection("things").countDocuments()).to.equal(200));
    }));

  it("holds up no write while another program reads the data file, and is copied once that has ended", () =>
    inStore(async (things, folder) => {
      await write(things, MB);
      const reader = new DatabaseSync(join(folder, "data.sqlite"), { readOnly: true });
      reader.exec("BEGIN; SELECT count(*) FROM collections");
      await write(things, 30 * MB);
      expect(sizeOf(folder), "the data file").to.be.below(20 * MB);
      reader.exec("COMMIT");
      reader.close();
      const grown = async () => {
        await things.insertOne({});
        return sizeOf(folder) > 25 * MB;
      };
      await pollUntil(grown, { timeoutMs: 15_000, what: "the copy of the log" });
    }));
});
