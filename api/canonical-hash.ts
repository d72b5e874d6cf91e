import { createHash } from "node:crypto";
import type { KeptFile } from "./middleware/multipart.ts";

/** A value as text that does not depend on the order of its keys; files by their hash. Bodies are not nested deeply. */
export function canonical(value: unknown): string {
  if (Buffer.isBuffer(value)) return sha256(value);
  if (isKeptFile(value)) return value.sha256;
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return String(JSON.stringify(value));
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${canonical(field)}`).join(",")}}`;
}

/** A file that was kept as it came; no JSON has a function. */
const isKeptFile = (value: unknown): value is KeptFile => typeof Object(value).take === "function";

export function sha256(value: string | Buffer): string {
  return createHash("sha256").update(value).digest("hex");
}
