import { createHash } from "node:crypto";

/** A value as text that does not depend on the order of its keys; files by their hash. Bodies are not nested deeply. */
export function canonical(value: unknown): string {
  if (Buffer.isBuffer(value)) return sha256(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return String(JSON.stringify(value));
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${canonical(field)}`).join(",")}}`;
}

export function sha256(value: string | Buffer): string {
  return createHash("sha256").update(value).digest("hex");
}
