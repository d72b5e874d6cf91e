import { backupCommands } from "./backup.ts";
import type { Command } from "./command.ts";
import { indexCommands } from "./indexes.ts";
import { readCommands } from "./reads.ts";
import { serverInfoCommands } from "./server-info.ts";
import { writeCommands } from "./writes.ts";

const families = { ...serverInfoCommands, ...readCommands, ...writeCommands, ...indexCommands, ...backupCommands };

/** Every command that the server knows; any other is answered with CommandNotFound. */
export const commands: ReadonlyMap<string, Command> = new Map(Object.entries(families));
