import pino from "pino";
import { makeParsePool } from "../../src/rag/parse-in-child.ts";
import { hostileDocuments } from "./hostile-documents.ts";
import { readToEnd } from "./read-to-end.ts";

/**
 * Reads every hostile document at its full size, or at the number of bytes that is given, and prints how each ends. It takes
 * minutes; `node test/support/read-hostile.ts [bytes] [words of its name]`.
 */
const [bytes = "", only = ""] = process.argv.slice(2);
const timeoutMs = 60_000;
const pool = makeParsePool({ timeoutMs, logger: pino({ level: "silent" }) });
let isBad = false;
for (const document of hostileDocuments.filter(({ what }) => what.includes(only))) {
  const source = await document.make(Number(bytes) || document.most);
  const startedAt = performance.now();
  const end = await readToEnd(pool, { ...document, bytes: source });
  const tookMs = performance.now() - startedAt;
  isBad ||= end.startsWith("unexpected") || tookMs > timeoutMs * 1.5;
  process.stdout.write(`${document.what.padEnd(32)} ${String(Math.round(tookMs)).padStart(6)} ms  ${end}\n`);
}
pool.close();
process.exitCode = isBad ? 1 : 0;
