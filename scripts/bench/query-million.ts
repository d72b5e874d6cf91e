import { newId } from "../../src/ids.ts";
import { dimensions, fillChunks, makeMatrix, withStore } from "./fill-chunks.ts";
import { format, type Measured } from "./goals.ts";
import { median, percentile } from "./measure.ts";
import { memoryOf } from "./process-usage.ts";
import { openStack, openTenant, type Stack } from "./stack.ts";
import { makeClient, makeScan, queryText } from "./time-queries.ts";

/** Parts of all chunks: what the measured tenant has, and what all have together on the smaller platform. */
const ownShare = 0.01;
const smallShare = 0.1;
/** One of the others has this part of all. */
const giantShare = 0.5;
const rounds = 12;
const callsPerRound = 25;
const giantCalls = 100;

/** The first query after that many writes waits until the store has read all vectors; it is not measured. */
const patient = { STORE_TIMEOUT_MS: "60000" };

const modes = ["vector", "hybrid"] as const;
type Sides = { small: number[]; large: number[] };

/**
 * A store of many chunks, a million unless said otherwise: what it needs of memory, what a query takes in the tenant that has
 * half of them, and how the query of a tenant that has a hundredth slows when what the others have grows by 10 to that. For
 * this two platforms stand side by side and take turns.
 */
export async function queryMillionBench({ chunks = 1_000_000 }: { chunks?: number }): Promise<Measured[]> {
  const own = roundTo(chunks * ownShare);
  const small = await openStack({ env: patient });
  try {
    const large = await openStack({ env: patient });
    try {
      await fill(small, { own, others: roundTo(chunks * smallShare) - own, giant: 0 });
      const giant = roundTo(chunks * giantShare);
      const giantHeaders = await fill(large, { own, others: chunks - giant - own, giant });
      const lines = await compare({ small, large }, chunks);
      return [...lines, await measureGiant(large, giantHeaders, giant), await memoryLine(large, chunks)];
    } finally {
      await large.close();
    }
  } finally {
    await small.close();
  }
}

/** Documents have twenty chunks, and are in four collections. */
const roundTo = (count: number) => Math.max(80, Math.round(count / 80) * 80);

/** Gives the stack's own tenant its chunks, others as many each, and one of them `giant`; returns that one's headers. */
async function fill(
  stack: Stack,
  { own, others, giant }: { own: number; others: number; giant: number },
): Promise<Record<string, string>> {
  const [first, largest] = [await openTenant(stack, "default"), await openTenant(stack, "giant")];
  const started = performance.now();
  await withStore(stack, async (db) => {
    await fillChunks(db, first.tenantId, { from: 0, to: own });
    for (let left = others; left > 0; left -= own) {
      const tenantId = newId("tenant");
      await db.collection<{ _id: string }>("tenants").insertOne({ _id: tenantId, name: tenantId } as never); // no more is read
      await fillChunks(db, tenantId, { from: 0, to: Math.min(own, left) });
    }
    if (giant > 0) await fillChunks(db, largest.tenantId, { from: 0, to: giant });
  });
  const seconds = (performance.now() - started) / 1_000;
  console.log(`${(own + others + giant).toLocaleString("en-US")} chunks written in ${seconds.toFixed(0)} s`);
  return largest.headers;
}

async function compare(stacks: { small: Stack; large: Stack }, chunks: number): Promise<Measured[]> {
  const clients = {
    small: makeClient(stacks.small.url, stacks.small.headers),
    large: makeClient(stacks.large.url, stacks.large.headers),
  };
  const times = { vector: { small: [], large: [] } as Sides, hybrid: { small: [], large: [] } as Sides };
  try {
    for (let round = 0; round <= rounds; round += 1) {
      for (const mode of modes) {
        for (let index = 0; index < callsPerRound; index += 1) {
          for (const side of index % 2 === 0 ? (["small", "large"] as const) : (["large", "small"] as const)) {
            const ms = await clients[side].query(queryText(index, `${round} ${mode}`), { mode });
            if (round > 0) times[mode][side].push(ms); // the first one warms up
          }
        }
      }
    }
  } finally {
    await Promise.all([clients.small.close(), clients.large.close()]);
  }
  const growth = 1 / smallShare;
  return modes.map((mode) => {
    const [before, after] = [median(times[mode].small), median(times[mode].large)];
    const p99 = percentile(times[mode].large, 0.99);
    return {
      what: `growth of a ${mode} query over ${format(chunks * ownShare)} chunks when all tenants' grow to ${format(chunks)}`,
      anchor: `a tenth of them: ${format(before)} ms`,
      product: `${format(after)} ms (p99 ${format(p99)})`,
      value: Math.max(0, Math.log(after / before) / Math.log(growth)),
      must: 0.05,
      aim: 0.02,
      isMoreBetter: false,
      unit: "",
    };
  });
}

async function measureGiant(stack: Stack, headers: Record<string, string>, rows: number): Promise<Measured> {
  const scan = makeScan(makeMatrix(0, rows));
  const client = makeClient(stack.url, headers);
  const [bare, floor, product]: [number[], number[], number[]] = [[], [], []];
  try {
    for (let index = 0; index < giantCalls + 3; index += 1) {
      const text = queryText(index, "giant");
      const times = [scan(text), await client.floor(text), await client.query(text, {})] as const;
      if (index >= 3) for (const [at, list] of [bare, floor, product].entries()) list.push(times[at] ?? 0);
    }
  } finally {
    await client.close();
  }
  const net = median(product) - median(floor);
  return {
    what: `vector query p50, ${format(rows)} of the chunks are the tenant's`,
    anchor: `SIMD scan ${format(median(bare))} ms`,
    product: `${format(net)} ms (p99 ${format(percentile(product, 0.99))})`,
    value: net / median(bare),
    must: 2,
    aim: 1.5,
    isMoreBetter: false,
    unit: "×",
  };
}

/** Memory of the store's process, after all of the queries. */
async function memoryLine(stack: Stack, chunks: number): Promise<Measured> {
  const pid = await withStore(stack, async (db) => Number((await db.command({ serverStatus: 1 })).pid));
  const { residentMb: store } = await memoryOf(pid);
  const { residentMb: api } = await memoryOf(stack.api.process.pid);
  const vectors = (chunks * dimensions * Float32Array.BYTES_PER_ELEMENT) / (1 << 20);
  return {
    what: `memory of the store with ${format(chunks)} chunks of ${dimensions}`,
    anchor: `the vectors alone ${format(vectors)} MB`,
    product: `${format(store)} MB (API ${format(api)} MB)`,
    value: store / vectors,
    must: 3,
    aim: 2,
    isMoreBetter: false,
    unit: "×",
  };
}
