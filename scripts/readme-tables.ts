/** A page with a generated table between its marks, `<!-- name:begin -->` and `<!-- name:end -->`. */
export function withTable(page: string, name: string, table: string): string {
  const [begin, end] = [`<!-- ${name}:begin -->`, `<!-- ${name}:end -->`];
  const [head, rest] = page.split(begin);
  const tail = rest?.split(end)[1];
  if (head === undefined || tail === undefined) throw new Error(`the page lacks ${begin} or ${end}`);
  return `${head}${begin}\n${table}\n${end}${tail}`;
}
