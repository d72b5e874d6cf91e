import type { EmbeddingRequest, EmbeddingResult, Served } from "../provider.ts";
import { malformed, parseWire } from "../wire-errors.ts";
import { startedEmbeddings, wireEmbeddings } from "./schemas.ts";

/** The body of `POST /embeddings`. Base64 is asked for: it is half the bytes and need not be parsed number by number. */
export function toWireEmbeddings(request: EmbeddingRequest): string {
  return JSON.stringify({
    model: request.model,
    input: request.input,
    encoding_format: "base64",
    dimensions: request.dimensions, // JSON leaves out what is undefined
  });
}

/** Reads base64 and arrays. @throws AppError `provider_failed` for what is not a list with a vector for each input. */
export function fromWireEmbeddings(body: string, { input, model }: EmbeddingRequest): EmbeddingResult {
  const { data, usage, ...wire } = parseWire(wireEmbeddings, body, "is not a list of embeddings");
  const count = input.length;
  const embeddings: (Float32Array | undefined)[] = new Array(count).fill(undefined);
  data.forEach(({ index, embedding }, n) => {
    const place = index ?? n;
    if (place >= 0 && place < embeddings.length) embeddings[place] = toVector(embedding);
  });
  const whole = embeddings.filter((vector) => vector !== undefined);
  if (whole.length !== count || data.length !== count) {
    throw malformed("another number of embeddings than was asked for");
  }
  return {
    embeddings: whole,
    ...(usage ? { usage: { inputTokens: usage.prompt_tokens } } : {}),
    model: wire.model ?? model,
  };
}

/** What a list of embeddings that broke off or does not fit reports; undefined when it is none at all. */
export function measureWireEmbeddings(begun: unknown): Served | undefined {
  const parsed = startedEmbeddings.safeParse(begun);
  if (!parsed.success) return undefined;
  const { usage } = parsed.data;
  return usage ? { usage: { inputTokens: usage.prompt_tokens, outputTokens: 0 } } : {};
}

/** A vector from base64 of little-endian float32, or from an array of numbers. */
function toVector(embedding: unknown): Float32Array {
  if (typeof embedding === "string") {
    const bytes = Buffer.from(embedding, "base64");
    if (bytes.length === 0 || bytes.length % 4 !== 0) throw malformed("an embedding that is not base64 of float32");
    const copy = new Uint8Array(bytes); // its own buffer: a view into Node's pool may not be aligned
    return new Float32Array(copy.buffer);
  }
  if (Array.isArray(embedding) && embedding.length > 0 && embedding.every((value) => typeof value === "number")) {
    return Float32Array.from(embedding);
  }
  throw malformed("an embedding that is no vector");
}
