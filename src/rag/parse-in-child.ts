import type { Config } from "../config/config.ts";
import { ChildLost } from "../isolation/child.ts";
import { makeChildPool } from "../isolation/child-pool.ts";
import { keepOnDisk } from "../isolation/keep-on-disk.ts";
import type { Memory } from "../isolation/memory.ts";
import { AppError, unavailable } from "../lib/errors.ts";
import type { Logger } from "../observe/logger.ts";
import type { RawSource } from "./parse/parse-source.ts";
import { unreadable } from "./parse/section.ts";
import type { ParsePart, ParseRequest } from "./parse-child.ts";
import type { ChunkText } from "./split.ts";
import { boundWarnings } from "./warnings.ts";

/** Largest number of chunks of one document. */
const MAX_CHUNKS = 50_000;
/** A source above this is large, in bytes. Large ones have processes of their own, so that a small one finds a free one. */
const LARGE_BYTES = 256 << 10;
/**
 * Bounds of a parsing process, in MB: on its resident memory, and on V8's heap, at which V8 collects all garbage, so that the
 * first one is not reached by garbage. A process has some 130 MB before it reads; 256 KiB of HTML with very many elements
 * take 430, 6 MB of PDF 490, and recognizing the text in a page scanned at 600 dpi takes 830.
 */
const MEMORY = {
  small: { heapMb: 128, rssMb: 200 },
  large: { heapMb: 300, rssMb: 400 },
  whole: { heapMb: 480, rssMb: 600 },
  ocr: { heapMb: 800, rssMb: 1_024 },
};
/**
 * Parsing processes of a worker, and of one tenant: a slow document does not block those of others. `whole` takes all memory
 * of the worker's children, for what needs more than `large` has.
 */
const CHILDREN = {
  small: { size: 3, perOwner: 2, hasSpare: true },
  large: { size: 1, perOwner: 1 },
  whole: { size: 1, perOwner: 1 },
};
type Kind = keyof typeof CHILDREN;

export type ParsePool = ReturnType<typeof makeParsePool>;
type Given = { owner: string; signal: AbortSignal };
export type ParsedSource = Awaited<ReturnType<ParsePool["read"]>>;

/** Part of a source's time in which text in pictures is recognized. The pages that are not reached then stay without. */
const OCR_SHARE = 0.6;

/**
 * Makes a pool of processes that start on demand. `timeoutMs` bounds the parsing of one source. In pages that are pictures text
 * is recognized in the languages of `ocrLanguages`; without any it is not.
 */
export function makeParsePool(options: Config["parse"] & { logger: Logger; memory: Memory }) {
  const { timeoutMs, ocrLanguages, logger, memory: shared } = options;
  const ocr = { languages: ocrLanguages, withinMs: OCR_SHARE * timeoutMs };
  const entry = new URL("./parse-child.ts", import.meta.url);
  const open = (kind: Kind, memory: { heapMb: number; rssMb: number }) =>
    makeChildPool<ParseRequest, ParsePart>({ entry, ...CHILDREN[kind], timeoutMs, memory, shared });
  const pools = {
    small: open("small", MEMORY.small),
    large: open("large", MEMORY.large),
    whole: open("whole", ocrLanguages.length > 0 ? MEMORY.ocr : MEMORY.whole),
  };
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
  /**
   * Reads a source in a process of the first kind that has enough memory for it, as a scan of few bytes needs much. What a
   * larger process makes waits on disk, so that it does not keep its memory from others for as long as its reader takes.
   * `made`: parts that a smaller process made before it ended. The same bytes give the same parts, so these are left out.
   */
  async function* inFirst(
    [kind, ...larger]: Kind[],
    request: ParseRequest,
    { owner, signal, made = 0 }: Given & { made?: number },
  ): AsyncGenerator<ParsePart> {
    if (kind === undefined) return;
    let count = 0;
    try {
      const parts = pools[kind].run(request, { owner, signal });
      for await (const part of kind === "small" ? parts : keepOnDisk(parts)) {
        count += 1;
        if (count > made) yield part;
      }
      return;
    } catch (error) {
      const isTooSmall = error instanceof ChildLost && error.reason === "memory";
      if (!isTooSmall || larger.length === 0) throw error;
    }
    yield* inFirst(larger, request, { owner, signal, made: Math.max(made, count) });
  }
  async function* parts(request: ParseRequest, given: Given) {
    try {
      yield* inFirst(
        request.bytes.length > LARGE_BYTES ? ["large", "whole"] : ["small", "large", "whole"],
        request,
        given,
      );
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
