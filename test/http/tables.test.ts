import { expect } from "chai";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import {
  type DataTable,
  makeCsvTable,
  makeDocxTable,
  makeHtmlTable,
  makeMarkdownTable,
  makePdfTable,
  makeXlsxTable,
  tables,
} from "../support/tables.ts";

type Format = keyof typeof tables;
type Passage = { content: string; headings?: string[]; page?: number };

const formats: { format: Format; name: string; make(table: DataTable): Buffer | Promise<Buffer> }[] = [
  { format: "html", name: "pumps.html", make: makeHtmlTable },
  { format: "docx", name: "prices.docx", make: makeDocxTable },
  { format: "markdown", name: "staff.md", make: makeMarkdownTable },
  { format: "pdf", name: "timetable.pdf", make: makePdfTable },
  { format: "xlsx", name: "machines.xlsx", make: makeXlsxTable },
  { format: "csv", name: "Ships of the fleet.csv", make: makeCsvTable },
];
/** Rows and columns that are asked for: forty-four in all, the last rows of each table among them. */
const asked: Record<Format, [row: number, column: number][]> = {
  html: [
    [0, 1],
    [7, 2],
    [13, 3],
    [19, 2],
    [22, 1],
    [28, 3],
    [33, 1],
    [39, 2],
  ],
  docx: [
    [1, 1],
    [6, 3],
    [11, 2],
    [17, 3],
    [24, 1],
    [31, 3],
    [39, 2],
  ],
  markdown: [
    [0, 2],
    [8, 1],
    [12, 3],
    [18, 2],
    [25, 3],
    [32, 1],
    [39, 2],
  ],
  pdf: [
    [0, 1],
    [5, 2],
    [10, 3],
    [16, 1],
    [21, 2],
    [27, 1],
    [34, 3],
    [39, 2],
  ],
  xlsx: [
    [0, 1],
    [6, 2],
    [13, 3],
    [19, 1],
    [26, 2],
    [33, 3],
    [39, 1],
  ],
  csv: [
    [1, 1],
    [7, 2],
    [14, 3],
    [20, 1],
    [27, 2],
    [32, 3],
    [39, 1],
  ],
};

describe("search in tables", function () {
  this.timeout(60_000);
  let test: TestPlatform;
  let client: ApiClient;

  before(async () => {
    test = await startPlatform();
    client = makeClient({ url: test.url, key: test.keys.owner });
    for (const { format, name, make } of formats) {
      const form = new FormData();
      form.set("file", new File([new Uint8Array(await make(tables[format]))], name));
      const made = await client.request("POST", "/rag/ingest", { raw: form, headers: { prefer: "wait=50" } });
      expect(made.status, made.text).to.equal(201);
      expect(made.at("chunks"), name).to.be.at.least(2);
    }
  });
  after(() => test?.close());

  const firstFor = async (query: string): Promise<Passage> => {
    const { body } = await client.post("/rag/query", { query, topK: 1 });
    const [first] = (body as { results: Passage[] }).results;
    if (!first) throw new Error(`nothing was found for: ${query}`);
    return first;
  };

  for (const { format } of formats) {
    const table: DataTable = tables[format];
    it(`has the row and the head of the answer in the first passage, ${format}`, async () => {
      for (const [row, column] of asked[format]) {
        const [name = "", value] = [table.rows[row]?.[0], table.rows[row]?.[column]];
        const passage = await firstFor(`${table.asks[column]} ${name}?`);
        const found = cellOf(passage.content, { name, head: table.head[column] ?? "" });
        expect(found, `${table.asks[column]} ${name}, in:\n${passage.content}`).to.equal(value);
        expect(passage.headings?.at(-1) ?? "").to.equal(table.section);
        if (format === "pdf") expect(passage.page).to.equal(row < 20 ? 1 : 2);
      }
    });
  }
});

/** What a passage's table has in the row of a name and in the column of a head. */
function cellOf(content: string, { name, head }: { name: string; head: string }): string | undefined {
  const rows = content.split("\n").filter((line) => line.startsWith("|"));
  const cells = rows.map((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim()));
  const column = cells[0]?.indexOf(head) ?? -1;
  return column === -1 ? undefined : cells.find((row) => row[1] === name)?.[column];
}
