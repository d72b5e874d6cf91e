import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { MongoClient } from "mongodb";
import { Agent } from "undici";

/**
 * The anchors of the memory bench: a process that has open what every host needs (six queues, the driver, undici), and, for
 * `worker`, has the splitters and the tokenizer loaded too.
 */
const { REDIS_URL: redisUrl = "", MONGODB_URL: mongoUrl = "" } = process.env;
const role = process.argv[2];
const connection = new Redis(redisUrl, { maxRetriesPerRequest: null });
const queues = Array.from({ length: 6 }, (_, index) => new Queue(`anchor-${index}`, { connection, prefix: "bench" }));
await Promise.all(queues.map((queue) => queue.waitUntilReady()));
const client = await new MongoClient(mongoUrl).connect();
const held: unknown[] = [client, new Agent()];
if (role === "worker") {
  const { encode } = await import("gpt-tokenizer");
  held.push(await import("@langchain/textsplitters"), encode("load the tables"));
}
process.send?.({ type: "ready", held: held.length });
process.on("SIGTERM", () => process.exit(0));
process.on("disconnect", () => process.exit(0));
