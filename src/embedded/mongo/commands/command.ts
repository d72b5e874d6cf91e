import type { Logger } from "../../../observe/logger.ts";
import type { Document } from "../bson/bson-types.ts";
import { commandError } from "../command-error.ts";
import { type Fields, readFields, type Shape } from "../fields.ts";
import { type Catalog, openCatalog } from "../storage/catalog.ts";
import type { Collection } from "../storage/collection.ts";
import { openStorage, type Storage } from "../storage/storage.ts";
import { type Cursors, makeCursors } from "../wire/cursors.ts";

/** What one call of a command has at hand. `target` is the value of the command's own field, mostly a collection's name. */
export type CommandContext = { engine: Engine; db: string; connectionId: number; name: string; target: unknown };

/** A command of the server. Its name is the key under which it is registered, in MongoDB's lower and upper case. */
export type Command = (context: CommandContext, body: Document) => Document;
export type CommandFamily = Record<string, Command>;

/** Fields that any command may carry. Sessions are accepted and need nothing: there are no transactions. */
const genericShape = {
  $db: "any",
  $readPreference: "any",
  lsid: "any",
  readConcern: "any",
  writeConcern: "any",
  comment: "any",
} as const;

/** A command that may have these fields beside the generic ones, and no others. */
export function defineCommand<S extends Shape>(
  name: string,
  shape: S,
  run: (context: CommandContext, fields: Fields<S>) => Document,
): Command {
  const whole = { ...genericShape, ...shape, [name]: "any" } as const;
  return (context, body) => run(context, readFields(name, body, whole) as Fields<S>); // and the generic ones
}

/** The name of the command's collection; of getMore it stands in a field. @throws CommandError 73 when it is no name. */
export function collectionName({ db, name, target }: CommandContext, value = target): string {
  if (typeof value === "string" && value !== "") return value;
  throw commandError("InvalidNamespace", `Invalid namespace specified '${db}.': ${name} expects a name`);
}

/** The command's collection, undefined when there is none of that name. */
export function findCollection(context: CommandContext): Collection | undefined {
  return context.engine.catalog.find(context.db, collectionName(context));
}

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
