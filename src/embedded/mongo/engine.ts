import type { Logger } from "../../observe/logger.ts";
import { type Catalog, openCatalog } from "./storage/catalog.ts";
import { openStorage, type Storage } from "./storage/storage.ts";
import { type Cursors, makeCursors } from "./wire/cursors.ts";

/** What commands work on. */
export type Engine = { storage: Storage; catalog: Catalog; cursors: Cursors; logger: Logger };

/** Opens the data file and reads its catalogue. Documents and search matrices are read when they are first asked for. */
export function openEngine(options: { dataFile: string; syncWrites?: boolean | undefined; logger: Logger }): Engine {
  const storage = openStorage(options.dataFile, { syncWrites: options.syncWrites });
  try {
    const catalog = openCatalog(storage);
    storage.commit(); // opening may have rebuilt a text index of an older layout
    return { storage, catalog, cursors: makeCursors(), logger: options.logger };
  } catch (error) {
    storage.close();
    throw error;
  }
}
