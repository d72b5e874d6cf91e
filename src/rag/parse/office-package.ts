import { type Entry, fromBufferPromise } from "yauzl";
import { AppError } from "../../lib/errors.ts";
import { readTree } from "./office-xml.ts";
import { unreadable } from "./section.ts";

const MAX_ENTRIES = 5_000;
const MAX_INFLATED_BYTES = 256 * 1024 * 1024;
const MAX_RATIO = 200; // XML compresses 10 to 40 times; a bomb a thousand times
const ALWAYS_INFLATED = 1_048_576; // bytes

/** A reference of one part to another. Links to places outside the file are left out. */
export type Relationship = { id: string; type: string; target: string };

/** The parts of an office document that are text. Names of parts begin without a slash. */
export type OfficePackage = {
  /** Of everything in the archive, in small letters. */
  names: ReadonlySet<string>;
  /** Whether there is a part that can be read. */
  has(name: string): boolean;
  /** The text of a part, as it inflates. @throws AppError `source_unreadable` */
  read(name: string): AsyncGenerator<string, void>;
  /** What a part refers to, by id; "" is the document as a whole. */
  relationships(name: string): Promise<ReadonlyMap<string, Relationship>>;
};

/**
 * Opens an office document. Nothing is inflated before it is read, and nothing that is no XML; sizes are those of its
 * directory, against which each entry is held while it inflates, since a directory may lie.
 * @throws AppError `source_unreadable`
 */
export async function openPackage(bytes: Buffer): Promise<OfficePackage> {
  return await orDamaged(async () => {
    const zip = await fromBufferPromise(bytes, { lazyEntries: true, validateEntrySizes: true, autoClose: false });
    if (zip.entryCount > MAX_ENTRIES) throw unreadable(`The archive has more than ${MAX_ENTRIES} entries.`);
    const entries = new Map<string, Entry>();
    const names = new Set<string>();
    let total = 0;
    for await (const entry of zip.eachEntry()) {
      names.add(keyOf(entry.fileName));
      if (!/\.(xml|rels|vml)$/i.test(entry.fileName)) continue;
      if (entry.isEncrypted()) throw unreadable("It is encrypted.");
      total += entry.uncompressedSize;
      if (total > MAX_INFLATED_BYTES || total > MAX_RATIO * bytes.length + ALWAYS_INFLATED) {
        throw unreadable("The archive inflates to far more than a document needs.");
      }
      entries.set(keyOf(entry.fileName), entry);
    }
    const has = (name: string) => entries.has(keyOf(name));
    const read = async function* (name: string): AsyncGenerator<string, void> {
      const entry = entries.get(keyOf(name));
      if (!entry) throw unreadable(`The document is damaged: it has no part ${name}.`);
      const stream = await orDamaged(() => zip.openReadStreamPromise(entry));
      try {
        yield* decode(stream);
      } catch (error) {
        throw asDamaged(error);
      } finally {
        stream.destroy();
      }
    };
    const relationships = async (name: string) => {
      const part = relationshipsPartOf(name);
      return has(part) ? readRelationships(read(part), name) : new Map<string, Relationship>();
    };
    return { names, has, read, relationships };
  });
}

/** The first part that the document, or a part of it, refers to by a type of relationship, which is the end of its URI. */
export async function findRelated(file: OfficePackage, name: string, type: string): Promise<string | undefined> {
  const all = [...(await file.relationships(name)).values()];
  return all.find((one) => one.type === type && file.has(one.target))?.target;
}

/** The title among the document's properties, unless a program wrote it there. */
export async function titleOf(file: OfficePackage): Promise<string | undefined> {
  const part = await findRelated(file, "", "core-properties");
  if (part === undefined) return undefined;
  const { children } = await readTree(file.read(part));
  const found = children.find((child) => typeof child !== "string" && child.name === "dc:title");
  const title = typeof found === "object" ? found.children.join("").trim() : "";
  const isWritten =
    /^(microsoft (word|powerpoint|excel) - .*|(power)?point presentation|powerpoint-pr.sentation|untitled)$/i;
  return title === "" || isWritten.test(title) || /\.(do[ct][xm]?|xl[st][xm]?|p[po][ts][xm]?|rtf|odt|pdf)$/i.test(title)
    ? undefined
    : title.slice(0, 300);
}

async function* decode(stream: AsyncIterable<Uint8Array>): AsyncGenerator<string, void> {
  let decoder: InstanceType<typeof TextDecoder> | undefined;
  for await (const bytes of stream) {
    decoder ??= new TextDecoder(charsetOf(bytes), { fatal: true });
    yield decoder.decode(bytes, { stream: true });
  }
  if (decoder) yield decoder.decode();
}

/** The format allows two encodings. */
function charsetOf([first, second]: Uint8Array): string {
  if ((first === 0xff && second === 0xfe) || (first === 0x3c && second === 0)) return "utf-16le";
  return (first === 0xfe && second === 0xff) || (first === 0 && second === 0x3c) ? "utf-16be" : "utf-8";
}

async function readRelationships(text: AsyncGenerator<string, void>, base: string) {
  const found = new Map<string, Relationship>();
  for (const child of (await readTree(text)).children) {
    if (typeof child === "string") continue;
    const { Id: id, Type: type = "", Target: target = "", TargetMode: mode } = child.attributes;
    if (id === undefined || mode === "External") continue;
    found.set(id, { id, type: type.slice(type.lastIndexOf("/") + 1), target: resolve(base, target) });
  }
  return found;
}

function relationshipsPartOf(name: string): string {
  const at = name.lastIndexOf("/") + 1;
  return `${name.slice(0, at)}_rels/${name.slice(at)}.rels`;
}

/** A target against the folder of the part that names it. */
function resolve(base: string, target: string): string {
  const parts = target.startsWith("/") ? [] : base.split("/").slice(0, -1);
  for (const part of target.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "." && part !== "") parts.push(part);
  }
  return parts.join("/");
}

/** Names of parts differ in more than case. */
function keyOf(name: string): string {
  return name.toLowerCase();
}

async function orDamaged<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw asDamaged(error);
  }
}

function asDamaged(error: unknown): AppError {
  return error instanceof AppError ? error : unreadable("The archive is damaged.", error);
}
