const polynomial = 0x82f63b78;
let table: Uint32Array | undefined;

/** CRC-32C (Castagnoli) of the bytes, as OP_MSG uses it. RFC 3720, appendix B.4. */
export function crc32c(bytes: Uint8Array): number {
  table ??= makeTable();
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (table[(crc ^ byte) & 0xff] ?? 0) ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

function makeTable(): Uint32Array {
  return Uint32Array.from({ length: 256 }, (_, byte) => {
    let value = byte;
    for (let bit = 0; bit < 8; bit++) value = (value & 1) === 1 ? polynomial ^ (value >>> 1) : value >>> 1;
    return value >>> 0;
  });
}
