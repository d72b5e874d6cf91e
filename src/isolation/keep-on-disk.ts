import { randomUUID } from "node:crypto";
import { closeSync, openSync, readSync, unlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deserialize } from "node:v8";
import { writeFrame } from "./child-messages.ts";

/** Bytes of a message's length, which precedes it. */
const LENGTH_BYTES = 4;

/**
 * Takes all of a child's parts at once and yields them as their reader takes them, so that the child is free before. They
 * wait in a file without a name, which is gone with its process. @throws what taking a part throws; a system's error.
 */
export async function* keepOnDisk<Part>(parts: AsyncIterable<Part>): AsyncGenerator<Part, void> {
  const path = join(tmpdir(), `switchyard-parts-${randomUUID()}`);
  const file = openSync(path, "wx+", 0o600);
  try {
    unlinkSync(path);
    for await (const part of parts) writeFrame(file, part);
    let at = 0;
    const take = (bytes: number) => {
      const taken = Buffer.alloc(bytes);
      const got = readSync(file, taken, 0, bytes, at);
      at += got;
      return got === bytes ? taken : undefined;
    };
    for (let length = take(LENGTH_BYTES); length; length = take(LENGTH_BYTES)) {
      const body = take(length.readUInt32LE());
      if (!body) throw new RangeError("a part on disk was cut");
      yield deserialize(body) as Part; // what was written above
    }
  } finally {
    closeSync(file);
  }
}
