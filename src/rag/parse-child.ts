import { isChild, serveRequests } from "../isolation/serve-requests.ts";
import { AppError } from "../lib/errors.ts";
import { foldText } from "./fold-text.ts";
import { type ParseOptions, parseSource } from "./parse/parse-source.ts";
import { unreadable } from "./parse/section.ts";
import type { DocumentWarning, SourceType } from "./schemas.ts";
import { CHUNK_CHARACTERS, type ChunkText, splitSections, toChunks } from "./split.ts";

/** A source that the child process is to read. A document of more than `maxChunks` chunks is rejected. */
export type ParseRequest = { bytes: Uint8Array; type?: string; name?: string; maxChunks: number } & ParseOptions;

/** The response: an outline, then the chunks in batches. `expected` estimates their number. */
export type ParsePart =
  | { kind: "outline"; title?: string; type: SourceType; expected: number; warnings: DocumentWarning[] }
  | { kind: "chunks"; chunks: ChunkText[] };

const BATCH_CHUNKS = 256; // sent while the next chunks are counted, so that host and child work at the same time

/** Parses, splits and counts an untrusted source. A crash, a hang or a lack of memory ends this process only. */
async function read(request: ParseRequest, send: (part: ParsePart) => void): Promise<void> {
  const { bytes, type, name, maxChunks, ocr } = request;
  const tooMany = () => new AppError("request_too_large", `The document has more than ${maxChunks} chunks.`);
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const source = { bytes: buffer, ...(type ? { type } : {}), ...(name ? { name } : {}) };
  const parsed = await parseSource(source, ocr ? { ocr } : {});
  for (const section of parsed.sections) section.text = foldText(section.text);
  const characters = parsed.sections.reduce((sum, { text }) => sum + text.length, 0);
  if (characters > maxChunks * CHUNK_CHARACTERS) throw tooMany();
  const pieces = splitSections(parsed.sections, parsed.type, maxChunks);
  if (pieces.length > maxChunks) throw tooMany();
  const title = parsed.title && foldText(parsed.title).slice(0, 300);
  const { type: read, warnings = [] } = parsed;
  send({ kind: "outline", type: read, expected: pieces.length, warnings, ...(title ? { title } : {}) });
  let batch: ChunkText[] = [];
  let total = 0;
  for (const piece of pieces) {
    const chunks = toChunks(piece, parsed.type);
    total += chunks.length;
    if (total > maxChunks) throw tooMany();
    batch.push(...chunks);
    if (batch.length >= BATCH_CHUNKS) {
      send({ kind: "chunks", chunks: batch });
      batch = [];
    }
  }
  if (batch.length > 0) send({ kind: "chunks", chunks: batch });
}

if (isChild()) {
  // Loads and compiles the parsers of most types before a document arrives.
  await read({ bytes: Buffer.from("# A document\n\nOne sentence."), maxChunks: 1 }, () => undefined);
  serveRequests<ParseRequest, ParsePart>(async (request, send) => {
    try {
      await read(request, send);
    } catch (error) {
      throw error instanceof AppError ? error : unreadable("Its structure is too unusual.", error);
    }
  });
}
