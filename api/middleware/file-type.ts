import type { IncomingMessage } from "node:http";

/** Longest header of a part that the parser takes, in bytes. */
const HEADER_BYTES = 16_384;

/**
 * Watches the body of a form for the header of its file, of which the parser names the media type alone: its charset is a
 * parameter. To be called before the body is piped; the function that it returns, once the file begins.
 */
export function watchFileType(request: IncomingMessage): () => string | undefined {
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
