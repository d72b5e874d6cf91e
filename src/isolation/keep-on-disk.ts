import { createCipheriv, createDecipheriv, randomBytes, randomUUID } from "node:crypto";
import { closeSync, openSync, readSync, unlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deserialize } from "node:v8";
import { toFrame, writeWhole } from "./child-messages.ts";

/** Bytes of a message's length, which precedes it. */
const LENGTH_BYTES = 4;
/** How a file is encrypted, with a key of its own that is in memory alone: what is removed stays on the disk until it is overwritten. */
const CIPHER = "aes-256-ctr";
const KEY_BYTES = 32;
const IV_BYTES = 16;

/**
 * Takes all of a child's parts at once and yields them as their reader takes them, so that the child is free before. They
 * wait in a file without a name, which is gone with its process, and which nobody else can read. @throws what taking a part throws; a system's error.
 */
export async function* keepOnDisk<Part>(parts: AsyncIterable<Part>): AsyncGenerator<Part, void> {
  const path = join(tmpdir(), `switchyard-parts-${randomUUID()}`);
  const file = openSync(path, "wx+", 0o600);
  try {
    unlinkSync(path);
    const [key, iv] = [randomBytes(KEY_BYTES), randomBytes(IV_BYTES)];
    const cipher = createCipheriv(CIPHER, key, iv);
    for await (const part of parts) writeWhole(file, cipher.update(toFrame(part)));
    const decipher = createDecipheriv(CIPHER, key, iv);
    let at = 0;
    const take = (bytes: number) => {
      const taken = Buffer.alloc(bytes);
      const got = readSync(file, taken, 0, bytes, at);
      at += got;
      return got === bytes ? decipher.update(taken) : undefined;
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
