import { createHash } from "node:crypto";
import { open, readFile } from "node:fs/promises";
import type { Found, Item } from "./item.ts";

/** A text file is a list of URLs if at least half of the lines at its beginning are; the size of that beginning, in bytes. */
const LOOKED_AT = 64 * 1024;
export const url = /^https?:\/\/\S+$/i;

/** A URL as an item; `file`: the list that has it. */
export function toUrlItem(address: string, file?: string): Item {
  const about = file === undefined ? {} : { file };
  return { id: address, ...about, fingerprint: "url", bytes: 0, source: { kind: "url", url: address } };
}

export async function isUrlList(path: string): Promise<boolean> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(LOOKED_AT), 0, LOOKED_AT, 0);
    const lines = decode(buffer.subarray(0, bytesRead))
      .split("\n")
      .slice(0, bytesRead === LOOKED_AT ? -1 : undefined)
      .map((line) => line.trim())
      .filter((line) => line !== "" && !line.startsWith("#"));
    return lines.length > 0 && lines.filter((line) => url.test(line)).length * 2 >= lines.length;
  } finally {
    await file.close();
  }
}

export async function readUrlList(path: string, found: Found): Promise<Item[]> {
  const lines = decode(await readFile(path))
    .split("\n")
    .map((line) => line.trim());
  found.lists.add(path);
  found.notes.push(`${path}: a list of URLs, ${lines.filter((line) => url.test(line)).length} in all`);
  return lines.flatMap((line, index) => {
    if (line === "" || line.startsWith("#")) return [];
    if (url.test(line)) return [toUrlItem(line, path)];
    found.problems.push({ id: `${path}#${index + 1}`, reason: "the line is not a URL" });
    return [];
  });
}

/** Each line an object with `content` or `url`, as `POST /rag/ingest` takes them. */
export async function readJsonLines(path: string, found: Found): Promise<Item[]> {
  const lines = decode(await readFile(path)).split("\n");
  found.lists.add(path);
  return lines.flatMap((line, index): Item[] => {
    if (line.trim() === "") return [];
    const id = `${path}#${index + 1}`;
    const body = readBody(line);
    if (body === undefined) {
      found.problems.push({ id, reason: 'the line is no JSON object with "content" or "url"' });
      return [];
    }
    if (typeof body.expiresAt === "string" && Date.parse(body.expiresAt) <= Date.now()) {
      found.leftOut.push({ id, reason: `it expired at ${body.expiresAt}` });
      return [];
    }
    const fingerprint = createHash("sha256").update(line).digest("hex").slice(0, 32);
    return [{ id, file: path, fingerprint, bytes: Buffer.byteLength(line), source: { kind: "json", body } }];
  });
}

function readBody(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    const body: Record<string, unknown> = { ...value };
    return typeof body.content === "string" || typeof body.url === "string" ? body : undefined;
  } catch {
    return undefined; // a line that is not JSON is reported as a problem by its number
  }
}

/** The text of a list: UTF-8, or UTF-16 as Windows writes it; the mark of either is no text. */
function decode(bytes: Buffer): string {
  const [first = 0, second = 0] = bytes;
  const mark = (first << 8) | second;
  const encoding = mark === 0xfffe ? "utf-16le" : mark === 0xfeff ? "utf-16be" : "utf-8";
  return new TextDecoder(encoding).decode(bytes); // it drops the mark
}
