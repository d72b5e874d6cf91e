import { AppError } from "../errors.ts";
import { isChild, serveRequests } from "../isolation/serve-requests.ts";
import { parseSource } from "./parse/parse-source.ts";
import { unreadable } from "./parse/section.ts";
import { MAX_CHUNKS, type ParsePart, type ParseRequest } from "./parse-messages.ts";
import { CHUNK_CHARACTERS, type ChunkText, splitSections, toChunks } from "./split.ts";

const BATCH_CHUNKS = 256; // sent on while the next are counted, so that host and child work at the same time

/**
 * The inside of a parsing process: parsing, splitting and counting of sources that nobody vouches for. What crashes, hangs
 * or eats memory here ends with the process, and the host goes on.
 */
async function read({ bytes, type, name }: ParseRequest, send: (part: ParsePart) => void): Promise<void> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const parsed = await parseSource({ bytes: buffer, ...(type ? { type } : {}), ...(name ? { name } : {}) });
  const characters = parsed.sections.reduce((sum, { text }) => sum + text.length, 0);
  if (characters > MAX_CHUNKS * CHUNK_CHARACTERS) throw tooMany();
  const passages = await splitSections(parsed.sections, parsed.type, MAX_CHUNKS);
  if (passages.length > MAX_CHUNKS) throw tooMany();
  const title = parsed.title?.slice(0, 300);
  send({ kind: "outline", type: parsed.type, passages: passages.length, ...(title ? { title } : {}) });
  let batch: ChunkText[] = [];
  let total = 0;
  for (const passage of passages) {
    const chunks = await toChunks(passage, parsed.type);
    total += chunks.length;
    if (total > MAX_CHUNKS) throw tooMany();
    batch.push(...chunks);
    if (batch.length >= BATCH_CHUNKS) {
      send({ kind: "chunks", chunks: batch });
      batch = [];
    }
  }
  if (batch.length > 0) send({ kind: "chunks", chunks: batch });
}

function tooMany(): AppError {
  return new AppError("request_too_large", `The document has more than ${MAX_CHUNKS} chunks.`);
}

if (isChild()) {
  serveRequests<ParseRequest, ParsePart>(async (request, send) => {
    try {
      await read(request, send);
    } catch (error) {
      throw error instanceof AppError ? error : unreadable("Its structure is too unusual.", error);
    }
  });
}
