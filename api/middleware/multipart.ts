import busboy from "busboy";
import { z } from "zod";
import { AppError, invalidRequest } from "../../src/errors.ts";
import type { ApiContext } from "../context.ts";
import { continueIfExpected, rejectEncodedBody, tooLarge } from "./body.ts";
import { watchFileType } from "./file-type.ts";

/** A file of a `multipart/form-data` body, held in memory. `mediaType` is what the client claims, with its parameters. */
export type UploadedFile = { filename: string; mediaType: string; bytes: Buffer };

/** Schema of the `file` field of a multipart body. */
export const uploadedFileSchema = z
  .custom<UploadedFile>(
    (value) => typeof value === "object" && value !== null && "bytes" in value,
    "a file is required",
  )
  .meta({ type: "string", format: "binary", description: "The file itself" });

const MAX_FIELDS = 32;
const MAX_FIELD_BYTES = 1 << 20;
/** Room for the parts' headers and fields beside the file, in bytes. */
const ENVELOPE_BYTES = 2 << 20;

/** A form with one file at most, of `limitBytes` at most. @throws AppError `request_too_large`, `invalid_request`. */
export async function readMultipartBody(ctx: ApiContext, limitBytes: number): Promise<Record<string, unknown>> {
  rejectEncodedBody(ctx);
  if (Number(ctx.get("content-length")) > limitBytes + ENVELOPE_BYTES) throw tooLarge(ctx, limitBytes);
  const parser = openParser(ctx, limitBytes);
  const fields = new Map<string, unknown>();
  const declaredType = watchFileType(ctx.req);
  continueIfExpected(ctx);
  await new Promise<void>((resolve, reject) => {
    const fail = (error: unknown) => {
      ctx.req.unpipe(parser);
      reject(error);
    };
    parser.on("field", (name, value, info) => {
      if (info.valueTruncated || info.nameTruncated) fail(tooLarge(ctx, MAX_FIELD_BYTES));
      else fields.set(name, value);
    });
    parser.on("file", (name, stream, info) => {
      const chunks: Buffer[] = [];
      const { filename = "", mimeType } = info;
      const mediaType = declaredType() ?? mimeType;
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("limit", () => fail(tooLarge(ctx, limitBytes)));
      stream.on("end", () => {
        fields.set(name, { filename, mediaType, bytes: Buffer.concat(chunks) } satisfies UploadedFile);
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
  });
  return Object.fromEntries(fields);
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
