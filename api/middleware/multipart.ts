import type { IncomingMessage } from "node:http";
import busboy from "busboy";
import { z } from "zod";
import { AppError, invalidRequest } from "../../src/lib/errors.ts";
import type { ApiContext } from "../context.ts";
import { continueIfExpected, rejectEncodedBody, tooLarge } from "./body.ts";

/** A file of a `multipart/form-data` body, held in memory. `mediaType` is what the client claims, with its parameters. */
type UploadedFile = { filename: string; mediaType: string; bytes: Buffer };

/** Schema of the `file` field of a multipart body. */
export const uploadedFileSchema = z
  .custom<UploadedFile>(
    (value) => typeof value === "object" && value !== null && "bytes" in value,
    "a file is required",
  )
  .meta({ type: "string", format: "binary", description: "The file itself" });

/** A file of such a body that was kept as it came, and is not in memory. */
export type KeptFile = {
  filename: string;
  mediaType: string;
  bytes: number;
  /** Of its contents, by which a repeat of the call is known. */
  sha256: string;
  /** Its id; from then on it stays. Else it is removed when the call is over. */
  take(): string;
};

/** Schema of the `file` field of a route that keeps its file as it comes. */
export const keptFileSchema = z
  .custom<KeptFile>((value) => typeof value === "object" && value !== null && "sha256" in value, "a file is required")
  .meta({ type: "string", format: "binary", description: "The file itself" });

/** Keeps what comes: returns the file once all of it is there. */
export type KeepFile = (chunks: AsyncIterable<Buffer>) => Promise<Pick<KeptFile, "bytes" | "sha256" | "take">>;

const MAX_FIELDS = 32;
const MAX_FIELD_BYTES = 1 << 20;
/** Room for the parts' headers and fields beside the file, in bytes. */
const ENVELOPE_BYTES = 2 << 20;

/** How large a file may be, and the setting that raises that. */
type FileLimit = { bytes: number; setting?: string };

/**
 * A form with one file at most, of so many bytes at most. The file is in memory, or where `keep` has put it.
 * @throws AppError `request_too_large`, `invalid_request`; what `keep` throws.
 */
export async function readMultipartBody(
  ctx: ApiContext,
  { bytes: limitBytes, setting }: FileLimit,
  keep?: KeepFile,
): Promise<Record<string, unknown>> {
  rejectEncodedBody(ctx);
  if (Number(ctx.get("content-length")) > limitBytes + ENVELOPE_BYTES) throw tooLarge(ctx, limitBytes, setting, "file");
  const parser = openParser(ctx, limitBytes);
  const fields = new Map<string, unknown>();
  const declaredType = watchFileType(ctx.req);
  let keeping: Promise<unknown> | undefined;
  continueIfExpected(ctx);
  await new Promise<void>((resolve, reject) => {
    const fail = (error: unknown) => {
      ctx.req.unpipe(parser);
      parser.destroy();
      reject(error);
    };
    parser.on("field", (name, value, info) => {
      if (info.valueTruncated || info.nameTruncated) fail(tooLarge(ctx, MAX_FIELD_BYTES, undefined, "field"));
      else fields.set(name, value);
    });
    parser.on("file", (name, stream, info) => {
      stream.on("limit", () => fail(tooLarge(ctx, limitBytes, setting, "file")));
      stream.on("error", fail); // a parser that is given up ends its file with an error
      const about = { filename: info.filename ?? "", mediaType: declaredType() ?? info.mimeType };
      if (keep) {
        const kept = keep(stream).then((file) => void fields.set(name, { ...about, ...file }));
        kept.catch(fail);
        keeping = kept;
        return;
      }
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => {
        fields.set(name, { ...about, bytes: Buffer.concat(chunks) } satisfies UploadedFile);
      });
    });
    for (const limit of ["partsLimit", "filesLimit", "fieldsLimit"] as const) {
      parser.on(limit, () => fail(invalidRequest("body", "The form has too many parts.")));
    }
    parser.on("error", (error) => fail(malformed(error)));
    parser.on("close", () => resolve());
    ctx.state.signal.addEventListener("abort", () => fail(new AppError("client_closed", "The client went away.")), {
      once: true,
    });
    ctx.req.pipe(parser);
  }).catch(async (error: unknown) => {
    await keeping?.catch(() => undefined); // what it put down until then is removed before the call is over
    throw error;
  });
  await keeping;
  return nested(fields);
}

const partOfField = /^([^[\]]+)\[([^[\]]+)\]$/;

/** The fields of a form, with those of names as `a[b]` as objects, which is how clients send those. */
function nested(fields: ReadonlyMap<string, unknown>): Record<string, unknown> {
  const objects = new Map<string, Map<string, unknown>>();
  const plain = new Map<string, unknown>();
  for (const [name, value] of fields) {
    const [, outer, inner] = partOfField.exec(name) ?? [];
    if (outer === undefined || inner === undefined || fields.has(outer)) plain.set(name, value);
    else objects.set(outer, (objects.get(outer) ?? new Map()).set(inner, value));
  }
  const made = [...objects].map(([name, parts]) => [name, Object.fromEntries(parts)] as const);
  return Object.fromEntries([...plain, ...made]);
}

function openParser(ctx: ApiContext, limitBytes: number): busboy.Busboy {
  try {
    return busboy({
      headers: ctx.req.headers,
      defParamCharset: "utf8",
      limits: { fileSize: limitBytes, files: 1, fields: MAX_FIELDS, parts: MAX_FIELDS + 1, fieldSize: MAX_FIELD_BYTES },
    });
  } catch (error) {
    throw malformed(error);
  }
}

function malformed(cause: unknown): AppError {
  return new AppError("invalid_request", "The multipart body could not be read.", { param: "body", cause });
}

/** Longest header of a part that the parser takes, in bytes. */
const HEADER_BYTES = 16_384;

/**
 * Watches the body of a form for the header of its file, of which the parser names the media type alone: its charset is a
 * parameter. To be called before the body is piped; the function that it returns, once the file begins.
 */
function watchFileType(request: IncomingMessage): () => string | undefined {
  const boundary = /boundary=(?:"([^"]+)"|([^;\s]+))/i.exec(request.headers["content-type"] ?? "");
  const delimiter = `--${boundary?.[1] ?? boundary?.[2]}\r\n`;
  let recent = Buffer.alloc(0);
  const keep = (chunk: Buffer) => {
    recent = Buffer.concat([recent.subarray(-HEADER_BYTES), chunk]);
  };
  request.on("data", keep);
  return () => {
    request.off("data", keep);
    const headers = recent
      .toString("latin1")
      .split(delimiter)
      .map((part) => part.split("\r\n\r\n", 1)[0] ?? "");
    recent = Buffer.alloc(0);
    const header = headers.find((one) => /^content-disposition:.*\bfilename/im.test(one));
    return /^content-type:[ \t]*([^\r\n]+)/im.exec(header ?? "")?.[1]?.trim();
  };
}
