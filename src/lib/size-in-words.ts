/** A number of bytes as people write it: `50 MB`, `64 KB`, `1000 bytes`. */
export function sizeInWords(bytes: number): string {
  if (bytes >= 1 << 20 && bytes % (1 << 20) === 0) return `${bytes / (1 << 20)} MB`;
  if (bytes >= 1 << 10 && bytes % (1 << 10) === 0) return `${bytes / (1 << 10)} KB`;
  return `${bytes} bytes`;
}
