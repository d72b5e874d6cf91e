import { extname } from "node:path";
import pino from "pino";
import { makeMemory } from "../../src/isolation/memory.ts";
import { makeParsePool } from "../../src/rag/parse-in-child.ts";
import { watchMemory } from "../trials/siege/watch-memory.ts";
import { hostileDocuments } from "./hostile-documents.ts";
import { readToEnd } from "./read-to-end.ts";

/**
 * Reads every hostile document at its full size, or at the number of bytes that is given, each in processes of its own, and
 * prints its type, the time, the largest memory of such a process, and how it ends. It takes minutes;
 * `node test/support/read-hostile.ts [bytes] [words of its name]`.
 */
const [bytes = "", only = ""] = process.argv.slice(2);
const timeoutMs = 60_000;
let isBad = false;
for (const document of hostileDocuments.filter(({ what }) => what.includes(only))) {
  const source = await document.make(Number(bytes) || document.most);
  const pool = makeParsePool({ timeoutMs, ocrLanguages: [], logger: pino({ level: "silent" }), memory: makeMemory() });
  const memory = watchMemory({ everyMs: 25 });
  const startedAt = performance.now();
  const end = await readToEnd(pool, { ...document, bytes: source });
  const tookMs = performance.now() - startedAt;
  const { child } = memory.stop();
  pool.close();
  isBad ||= end.startsWith("unexpected") || tookMs > timeoutMs * 1.5;
  const cells = [
    extname(document.name).padEnd(5),
    document.what.padEnd(28),
    `${Math.round(tookMs)} ms`.padStart(9),
    `${Math.round(child)} MB`.padStart(8),
  ];
  process.stdout.write(`${cells.join(" ")}  ${end}\n`);
}
process.exitCode = isBad ? 1 : 0;
