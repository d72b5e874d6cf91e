import { type MessagePort, parentPort } from "node:worker_threads";
import { AppError } from "../errors.ts";
import { parseSource } from "./parse/parse-source.ts";
import { unreadable } from "./parse/section.ts";
import { MAX_CHUNKS, type ParseReply, type ParseRequest } from "./parse-messages.ts";
import { type ChunkText, splitSections, toChunks } from "./split.ts";

const BATCH_CHUNKS = 256; // sent on while the next are counted, so that host and thread work at the same time

/**
 * The inside of a parsing thread: parsing, splitting and counting of sources that nobody vouches for. What crashes, hangs
 * or eats memory here ends with the thread, and the host goes on.
 */
async function read(request: ParseRequest, send: (reply: ParseReply) => void): Promise<void> {
  const { id, bytes, type, name } = request;
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const parsed = await parseSource({ bytes: buffer, ...(type ? { type } : {}), ...(name ? { name } : {}) });
  const passages = await splitSections(parsed.sections, parsed.type);
  if (passages.length > MAX_CHUNKS) throw tooMany();
  const title = parsed.title?.slice(0, 300);
  send({ id, kind: "outline", type: parsed.type, passages: passages.length, ...(title ? { title } : {}) });
  let batch: ChunkText[] = [];
  let total = 0;
  for (const passage of passages) {
    const chunks = await toChunks(passage, parsed.type);
    total += chunks.length;
    if (total > MAX_CHUNKS) throw tooMany();
    batch.push(...chunks);
    if (batch.length >= BATCH_CHUNKS) {
      send({ id, kind: "chunks", chunks: batch });
      batch = [];
    }
  }
  if (batch.length > 0) send({ id, kind: "chunks", chunks: batch });
  send({ id, kind: "end" });
}

function tooMany(): AppError {
  return new AppError("request_too_large", `The document has more than ${MAX_CHUNKS} chunks.`);
}

function serve(port: MessagePort): void {
  const send = (reply: ParseReply) => port.postMessage(reply);
  port.on("message", (request: ParseRequest) => {
    read(request, send).catch((error: unknown) => {
      const known = error instanceof AppError ? error : unreadable("Its structure is too unusual.", error);
      send({
        id: request.id,
        kind: "error",
        code: known.code,
        message: known.message,
        cause: String(known.cause ?? ""),
      });
    });
  });
}

if (parentPort) serve(parentPort);
