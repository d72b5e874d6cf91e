import type { Document } from "../bson/bson-types.ts";
import { decodeReceived } from "../bson/codec.ts";
import { CommandError, errorCodes } from "../command-error.ts";

/** OP_MSG, and the OP_QUERY of a first hello. https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/ */
export const maxMessageBytes = 48_000_000;
const headerBytes = 16;

const opReply = 1;
const opQuery = 2004;
const opMsg = 2013;

const flagMoreToCome = 2;
/** Bits 0 to 15 are required: a message with one that is not known (or with a checksum, bit 0) must be refused. */
const unknownRequiredFlags = 0xffff & ~flagMoreToCome;

export type Request = {
  requestId: number;
  body: Document;
  /** The client wants no answer. */
  isSilent: boolean;
  isLegacy: boolean;
  /** The body holds values of a type that is not offered, and is not read. */
  refusal?: CommandError;
};

/** The bytes are not a message. What follows on that connection cannot be trusted either. */
class MalformedMessage extends Error {}

/** Collects bytes until a message is whole; the usual message, one chunk, is not copied. */
export function makeInbox(maxBytes = maxMessageBytes) {
  let chunks: Buffer[] = [];
  let length = 0;
  return {
    add: (bytes: Buffer) => {
      chunks.push(bytes);
      length += bytes.length;
    },
    /** The next message, undefined as long as it is not whole. @throws MalformedMessage when its length cannot be one. */
    take: (): Buffer | undefined => {
      if (length < headerBytes) return undefined;
      if (chunks.length > 1 && (chunks[0]?.length ?? 0) < headerBytes) chunks = [Buffer.concat(chunks, length)];
      const wanted = chunks[0]?.readInt32LE(0) ?? 0;
      if (wanted < headerBytes || wanted > maxBytes) throw new MalformedMessage(`a message of ${wanted} bytes`);
      if (length < wanted) return undefined;
      const [all = Buffer.alloc(0)] = chunks.length === 1 ? chunks : [Buffer.concat(chunks, length)];
      length -= wanted;
      chunks = length > 0 ? [all.subarray(wanted)] : [];
      return all.subarray(0, wanted);
    },
  };
}

/** Reads one whole message. @throws MalformedMessage, or bson's error when a document in it is broken. */
export function readRequest(message: Buffer): Request {
  const opCode = message.readInt32LE(12);
  if (opCode !== opMsg && opCode !== opQuery) throw new MalformedMessage(`operation ${opCode} is not spoken here`);
  if (message.length < headerBytes + 9) throw new MalformedMessage("no body");
  const isLegacy = opCode === opQuery;
  const isSilent = !isLegacy && (message.readUInt32LE(16) & flagMoreToCome) !== 0;
  const head = { requestId: message.readInt32LE(4), isSilent, isLegacy };
  try {
    return { ...head, body: isLegacy ? readQuery(message) : readMsg(message) };
  } catch (error) {
    if (!(error instanceof CommandError) || error.code !== errorCodes.NotImplemented) throw error;
    return { ...head, body: {}, refusal: error };
  }
}

function readMsg(message: Buffer): Document {
  const flags = message.readUInt32LE(16);
  if ((flags & unknownRequiredFlags) !== 0) throw new MalformedMessage(`unknown flags ${flags.toString(16)}`);
  const end = message.length;
  let body: Document | undefined;
  const sequences: { name: string; documents: Buffer[] }[] = [];
  for (let at = 20; at < end; ) {
    const kind = message[at];
    const size = sizeAt(message, at + 1, end);
    const section = message.subarray(at + 1, at + 1 + size);
    if (kind === 0 && body === undefined) body = readBody(section);
    else if (kind === 1) sequences.push(readSequence(section));
    else throw new MalformedMessage(`section of kind ${kind}`);
    at += 1 + size;
  }
  if (body === undefined) throw new MalformedMessage("no body");
  for (const { name, documents } of sequences) {
    if (Object.hasOwn(body, name)) throw new MalformedMessage(`field ${name} is given twice`);
    body[name] = name === "documents" ? documents : documents.map((bytes) => decodeReceived(bytes));
  }
  return body;
}

function sizeAt(message: Buffer, at: number, end: number): number {
  if (at + 4 > end) throw new MalformedMessage("a section is cut");
  const size = message.readInt32LE(at);
  if (size < 5 || at + size > end) throw new MalformedMessage(`a section of ${size} bytes`);
  return size;
}

const insertField = Buffer.from("insert\0", "latin1");
const documentsRaw = { documents: true };

/** The documents of an insert stay bytes: they are stored as they came. */
function readBody(bytes: Buffer): Document {
  const isInsert = bytes.compare(insertField, 0, insertField.length, 5, 5 + insertField.length) === 0;
  return decodeReceived(bytes, isInsert ? documentsRaw : undefined);
}

function readSequence(section: Buffer): { name: string; documents: Buffer[] } {
  const nameEnd = section.indexOf(0, 4);
  if (nameEnd < 0) throw new MalformedMessage("a sequence without a name");
  const documents: Buffer[] = [];
  for (let at = nameEnd + 1; at < section.length; ) {
    const size = sizeAt(section, at, section.length);
    documents.push(section.subarray(at, at + size));
    at += size;
  }
  return { name: section.toString("utf8", 4, nameEnd), documents };
}

function readQuery(message: Buffer): Document {
  const nameEnd = message.indexOf(0, 20);
  if (nameEnd < 0 || nameEnd + 13 > message.length) throw new MalformedMessage("a query that is cut");
  const namespace = message.toString("utf8", 20, nameEnd);
  if (!namespace.endsWith(".$cmd")) throw new MalformedMessage("OP_QUERY other than a command");
  const at = nameEnd + 9;
  const body = decodeReceived(message.subarray(at, at + sizeAt(message, at, message.length)));
  return { ...body, $db: namespace.slice(0, -".$cmd".length) };
}

/** The frame of an answer: OP_MSG, or OP_REPLY to a legacy hello. */
export function frameReply(request: Pick<Request, "requestId" | "isLegacy">, body: Uint8Array, id: number): Buffer {
  const before = headerBytes + (request.isLegacy ? 20 : 5);
  const frame = Buffer.allocUnsafe(before + body.length);
  frame.fill(0, headerBytes, before);
  frame.writeInt32LE(frame.length, 0);
  frame.writeInt32LE(id, 4);
  frame.writeInt32LE(request.requestId, 8);
  frame.writeInt32LE(request.isLegacy ? opReply : opMsg, 12);
  if (request.isLegacy) {
    frame.writeInt32LE(8, 16); // AwaitCapable, as every server of today says
    frame.writeInt32LE(1, 32); // one document
  }
  frame.set(body, before);
  return frame;
}
