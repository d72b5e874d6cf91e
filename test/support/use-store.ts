import type { Db } from "mongodb";
import { connectStore } from "../../src/store/connect.ts";
import { startServer } from "../dialect/support.ts";

/** Registers hooks that open a database of this file's own as the product does, without the rest of the platform. */
export function useStore(): () => Db {
  let db: Db | undefined;
  let close = async () => {};
  before("open the store", async () => {
    const server = await startServer();
    const name = `store_${process.pid}_${Math.random().toString(36).slice(2, 10)}`;
    const store = await connectStore({ url: server.url, db: name, timeoutMs: 5_000 });
    close = async () => {
      await store.db.dropDatabase();
      await store.close();
      await server.close();
    };
    db = store.db;
  });
  after("close the store", () => close());
  return () => {
    if (db === undefined) throw new Error("the store is open only while the tests run");
    return db;
  };
}
