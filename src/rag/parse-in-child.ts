import type { Config } from "../config.ts";
import { AppError, unavailable } from "../errors.ts";
import { ChildLost } from "../isolation/child.ts";
import { makeChildPool } from "../isolation/child-pool.ts";
import type { Logger } from "../logger.ts";
import type { RawSource } from "./parse/parse-source.ts";
import { unreadable } from "./parse/section.ts";
import type { ParsePart, ParseRequest } from "./parse-child.ts";
import type { ChunkText } from "./split.ts";
import { boundWarnings } from "./warnings.ts";

/** Largest number of chunks of one document. */
const MAX_CHUNKS = 50_000;
/** A source above this is large, in bytes. Large ones have processes of their own, so that a small one finds a free one. */
const LARGE_BYTES = 256 << 10;
/** RSS is reached first, before V8 spends its time collecting garbage. */
const bounded = (mb: number) => ({ heapMb: mb, rssMb: mb });
/**
 * Parsing processes of a worker, and of one tenant: a slow document does not block those of others. A process has some 160 MB
 * before it reads; 45 MB of HTML take 540, and recognizing the text in a page scanned at 600 dpi takes 830.
 */
const CHILDREN = {
  small: { size: 3, perOwner: 2, hasSpare: true, memory: bounded(512) },
  large: { size: 2, perOwner: 1, memory: bounded(1_024) },
};

export type ParsePool = ReturnType<typeof makeParsePool>;
export type ParsedSource = Awaited<ReturnType<ParsePool["read"]>>;

/** Part of a source's time in which text in pictures is recognized. The pages that are not reached then stay without. */
const OCR_SHARE = 0.6;

/**
 * Makes a pool of processes that start on demand. `timeoutMs` bounds the parsing of one source. In pages that are pictures text
 * is recognized in the languages of `ocrLanguages`; without any it is not.
 */
export function makeParsePool(options: Config["parse"] & { logger: Logger }) {
  const { timeoutMs, ocrLanguages, logger } = options;
  const ocr = { languages: ocrLanguages, withinMs: OCR_SHARE * timeoutMs };
  const entry = new URL("./parse-child.ts", import.meta.url);
  const open = (bounds: (typeof CHILDREN)[keyof typeof CHILDREN]) =>
    makeChildPool<ParseRequest, ParsePart>({ entry, ...bounds, timeoutMs });
  const pools = { small: open(CHILDREN.small), large: open(CHILDREN.large) };
  const explain = (error: unknown) => {
    if (!(error instanceof ChildLost)) return error;
    logger.warn({ err: error }, "a parsing process was lost with its document");
    switch (error.reason) {
      case "time":
        return unreadable(`Reading it took longer than ${timeoutMs} ms.`, error);
      case "memory":
        return unreadable("Reading it needs more memory than allowed.", error);
      case "crash":
        return unavailable("The parsing of documents", error);
      default:
        return error.reason satisfies never;
    }
  };
  /** A small source that needs more memory than a small process has is read again in a large one, as a scan of few bytes. */
  async function* inEither(request: ParseRequest, options: { owner: string; signal: AbortSignal }) {
    let begun = false;
    try {
      for await (const part of pools.small.run(request, options)) {
        begun = true;
        yield part;
      }
      return;
    } catch (error) {
      if (begun || !(error instanceof ChildLost) || error.reason !== "memory") throw error;
    }
    yield* pools.large.run(request, options);
  }
  async function* parts(request: ParseRequest, options: { owner: string; signal: AbortSignal }) {
    try {
      yield* request.bytes.length > LARGE_BYTES ? pools.large.run(request, options) : inEither(request, options);
    } catch (error) {
      throw explain(error);
    }
  }
  return {
    /**
     * Parses a source in a child process, with limits on time and memory. Resolves with its outline, and with its chunks as
     * the child produces them; they can be iterated once. Until all are taken the child waits, in one of the tenant's few
     * places: who reads disposes of what it got, whatever happens, so that no error keeps the place.
     * @throws AppError `source_unreadable`, `request_too_large`; also while the chunks are iterated.
     */
    async read({ bytes, type, name }: RawSource, { tenantId, signal }: { tenantId: string; signal: AbortSignal }) {
      const hints = { ...(type ? { type } : {}), ...(name ? { name } : {}) };
      const request = { bytes, maxChunks: MAX_CHUNKS, ...hints, ...(ocrLanguages.length > 0 ? { ocr } : {}) };
      const replies = parts(request, { owner: tenantId, signal });
      const first = await replies.next();
      if (first.done || first.value.kind !== "outline") {
        await replies.return();
        throw new TypeError("a parsing process sent no outline");
      }
      const { kind: _kind, ...outline } = first.value;
      const leave = async () => void (await replies.return());
      const warnings = boundWarnings(outline.warnings);
      return { ...outline, warnings, chunks: chunksOf(replies), [Symbol.asyncDispose]: leave };
    },
    close(): void {
      for (const { close } of Object.values(pools)) close();
    },
  };
}

async function* chunksOf(replies: AsyncGenerator<ParsePart, void>): AsyncGenerator<ChunkText[]> {
  let total = 0;
  for await (const reply of replies) {
    if (reply.kind !== "chunks") continue;
    total += reply.chunks.length;
    if (total > MAX_CHUNKS) throw new AppError("internal", "A parsing process sent too many chunks.");
    yield reply.chunks;
  }
}
