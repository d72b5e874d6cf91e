/** Writes a text in a charset of browsers, which `TextDecoder` reads. @throws Error: it has no such character */
export function encode(text: string, charset: string): Buffer {
  const table = tables.get(charset) ?? makeTable(charset);
  tables.set(charset, table);
  return Buffer.from(
    [...text].flatMap((character) => {
      const bytes = table.get(character);
      if (!bytes) throw new Error(`${charset} has no ${character}`);
      return bytes;
    }),
  );
}

const tables = new Map<string, Map<string, number[]>>();

function makeTable(charset: string): Map<string, number[]> {
  const decoder = new TextDecoder(charset);
  const table = new Map<string, number[]>();
  const add = (bytes: number[]) => {
    const text = decoder.decode(Uint8Array.from(bytes));
    if ([...text].length === 1 && text !== "\ufffd" && !table.has(text)) table.set(text, bytes);
  };
  for (let first = 0; first < 256; first += 1) add([first]);
  if (!/^(gb|big5|shift|euc)/.test(charset)) return table;
  for (let first = 0x81; first < 255; first += 1)
    for (let second = 0x40; second < 255; second += 1) add([first, second]);
  return table;
}
