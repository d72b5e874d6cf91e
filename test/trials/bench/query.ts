import { collections, dimensions, fillChunks, makeMatrix, withStore } from "./fill-chunks.ts";
import { format, type Measured } from "./goals.ts";
import { median, percentile } from "./measure.ts";
import { openStack, openTenant, type Stack } from "./stack.ts";
import { makeClient, makeScan, queryText } from "./time-queries.ts";

/** How many chunks there are, and how many times the scan a query may take at most: of few, what surrounds it counts more. */
const sizes = [
  { size: 10_000, must: 3 },
  { size: 100_000, must: 2 },
];
const rounds = 5;
const callsPerRound = 40;

/** What a query is limited to, by what the table calls it. */
const limits = {
  "": {},
  ", one collection of four": { collection: collections[1] },
  ", three collections of four": { collection: collections.slice(1) },
  ", a value that half of the documents have": { filter: { kind: "even" } },
  ", a range that half of the documents lie in": { filter: { year: { gte: 2010 } } },
};

/**
 * `/rag/query` in vector mode, less what any call over HTTP costs, against the bare SIMD scan of all of the tenant's vectors:
 * without limits, and limited to collections or by a filter.
 */
export async function queryBench(): Promise<Measured[]> {
  const stack = await openStack();
  const lines: Measured[] = [];
  try {
    const { tenantId } = await openTenant(stack, "default");
    let loaded = 0;
    for (const { size, must } of sizes) {
      await withStore(stack, (db) => fillChunks(db, tenantId, { from: loaded, to: size }));
      loaded = size;
      lines.push(...(await measure(stack, { size, must })));
    }
    return lines;
  } finally {
    await stack.close();
  }
}

async function measure(stack: Stack, { size, must }: (typeof sizes)[number]): Promise<Measured[]> {
  const scan = makeScan(makeMatrix(0, size));
  const client = makeClient(stack.url, stack.headers);
  const bare: number[] = [];
  const floor: number[] = [];
  const product = new Map(Object.keys(limits).map((name) => [name, [] as number[]]));
  try {
    for (let round = 0; round <= rounds; round += 1) {
      for (let index = 0; index < callsPerRound; index += 1) {
        const text = queryText(index, round);
        const times: [number[] | undefined, number][] = [
          [bare, scan(text)],
          [floor, await client.floor(text)],
        ];
        for (const [name, where] of Object.entries(limits))
          times.push([product.get(name), await client.query(`${text}${name}`, where)]);
        if (round > 0) for (const [list, ms] of times) list?.push(ms); // the first one warms up
      }
    }
  } finally {
    await client.close();
  }
  return Object.keys(limits).map((name) => {
    const times = product.get(name) ?? [];
    const net = median(times) - median(floor);
    return {
      what: `vector query p50, ${size.toLocaleString("en-US")} chunks of ${dimensions}${name}`,
      anchor: `SIMD scan ${format(median(bare))} ms`,
      product: `${format(net)} ms (p99 ${format(percentile(times, 0.99))}, HTTP floor ${format(median(floor))})`,
      value: net / median(bare),
      must,
      aim: 1.5,
      isMoreBetter: false,
      unit: "×",
    };
  });
}
