import { aggregateCommands } from "./aggregate.ts";
import type { Command } from "./command.ts";
import { deleteCommands } from "./delete.ts";
import { explainCommands } from "./explain.ts";
import { findCommands } from "./find.ts";
import { findAndModifyCommands } from "./find-and-modify.ts";
import { indexCommands } from "./indexes.ts";
import { insertCommands } from "./insert.ts";
import { serverInfoCommands } from "./server-info.ts";
import { updateCommands } from "./update.ts";

/** Every command that the server knows; any other is answered with CommandNotFound. */
export const commands: ReadonlyMap<string, Command> = new Map(
  [
    serverInfoCommands,
    findCommands,
    insertCommands,
    updateCommands,
    deleteCommands,
    findAndModifyCommands,
    aggregateCommands,
    indexCommands,
    explainCommands,
  ].flatMap((family) => Object.entries(family)),
);
