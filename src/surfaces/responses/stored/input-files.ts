import { text } from "../../../gateway/message-schemas.ts";
import { AppError, invalidRequest } from "../../../lib/errors.ts";
import { sizeInWords } from "../../../lib/size-in-words.ts";
import type { FileRecord } from "../../../store/file-store.ts";
import type { InputItem, InputPart, ResponsesBody } from "../request-schemas.ts";

/** What the contents of files are read with. */
export type InputFiles = {
  /** @throws AppError `not_found`, also for a file that is not the caller's. */
  find(fileId: string): Promise<FileRecord>;
  read(fileId: string): Promise<Buffer>;
  /** Sets memory aside until the call is over. */
  reserve(bytes: number): void;
};

/** By which bytes a file begins, and those with which its first twelve end. */
const signatures: readonly [type: string, begins: string, ends?: string][] = [
  ["image/png", "\x89PNG\r\n\x1a\n"],
  ["image/jpeg", "\xff\xd8\xff"],
  ["image/gif", "GIF87a"],
  ["image/gif", "GIF89a"],
  ["image/webp", "RIFF", "WEBP"],
  ["application/pdf", "%PDF-"],
];
const SIGNATURE_BYTES = 12;

type FilePart = InputPart & { file_id: string };
const isFilePart = (part: InputPart): part is FilePart => "file_id" in part && typeof part.file_id === "string";
/** An item with parts that may be files: none of an assistant's, of a system's or of a developer's is. */
type Holder = Extract<InputItem, { output: unknown } | { role: "user" }>;
const isHolder = (item: InputItem): item is Holder => "output" in item || ("role" in item && item.role === "user");
const fieldOf = (item: Holder) => ("output" in item ? "output" : "content");
function partsOf(item: InputItem): readonly InputPart[] {
  const parts = !isHolder(item) ? "" : "output" in item ? item.output : item.content;
  return typeof parts === "string" ? [] : parts;
}

/** Whether an input refers to files of `/v1/files`. */
export const refersToFiles = ({ input }: Pick<ResponsesBody, "input">): boolean =>
  typeof input !== "string" && input.some((item) => partsOf(item).some(isFilePart));

/**
 * A body with the contents of files in the places of their ids, as if its caller had sent them: pictures and PDFs as data:
 * URLs, any other file as its text. `maxBytes` bounds all of them together.
 * @throws AppError `not_found`; `invalid_request` for a file that is neither; `request_too_large`; what `reserve` throws.
 */
export async function withFiles<B extends Pick<ResponsesBody, "input">>(
  files: InputFiles,
  { body, maxBytes }: { body: B; maxBytes: number },
): Promise<B> {
  if (typeof body.input === "string") return body;
  let taken = 0;
  const readPart = async (part: FilePart, param: string): Promise<InputPart> => {
    const file = await files.find(part.file_id).catch((error: unknown) => {
      if (!(error instanceof AppError) || error.code !== "not_found") throw error;
      throw new AppError("not_found", `${param}: there is no file ${part.file_id}.`, { param });
    });
    const size = Math.ceil((file.bytes * 4) / 3);
    taken += size;
    if (taken > maxBytes) {
      const message = `${param}: the files of a request have ${sizeInWords(maxBytes)} at most (MAX_JSON_BYTES).`;
      throw new AppError("request_too_large", message, { param });
    }
    files.reserve(size);
    return toInline(part, { file, bytes: await files.read(part.file_id), param });
  };
  const input: InputItem[] = [];
  for (const [place, item] of body.input.entries()) {
    if (!isHolder(item) || !partsOf(item).some(isFilePart)) {
      input.push(item);
      continue;
    }
    const parts: InputPart[] = [];
    for (const [at, part] of partsOf(item).entries()) {
      parts.push(isFilePart(part) ? await readPart(part, `input[${place}].${fieldOf(item)}[${at}].file_id`) : part);
    }
    input.push("output" in item ? { ...item, output: parts } : { ...item, content: parts });
  }
  return { ...body, input };
}

type Content = { file: FileRecord; bytes: Buffer; param: string };

function toInline(part: FilePart, { file: { filename }, bytes, param }: Content): InputPart {
  const head = bytes.toString("latin1", 0, SIGNATURE_BYTES);
  const type = signatures.find(([, begins, ends = ""]) => head.startsWith(begins) && head.endsWith(ends))?.[0];
  const url = () => `data:${type};base64,${bytes.toString("base64")}`;
  if (part.type === "input_image") {
    if (type?.startsWith("image/")) return { type: "input_image", image_url: url(), detail: part.detail };
    throw invalidRequest(param, `${param}: the file must be a PNG, JPEG, GIF or WebP.`);
  }
  if (type === "application/pdf") return { type: "input_file", filename, file_data: url() };
  const said = type === undefined ? toText(bytes) : undefined;
  if (said === undefined) {
    const advice = "Pictures are an input_image; other documents can be searched in a vector store.";
    throw invalidRequest(param, `${param}: the file must be a PDF or a text in UTF-8. ${advice}`);
  }
  const named = text.safeParse(`${filename}:\n\n${said}`);
  if (!named.success) throw invalidRequest(param, `${param}: the text of the file is too long for one part.`);
  return { type: "input_text", text: named.data };
}

/** The text of a file in UTF-8; undefined of any other. */
function toText(bytes: Buffer): string | undefined {
  try {
    const decoded = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return decoded.includes("\0") ? undefined : decoded;
  } catch {
    return undefined;
  }
}
