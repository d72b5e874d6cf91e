import { Command, InvalidArgumentError, Option } from "commander";
import { REFUSED } from "./ingest/account.ts";
import { Refusal } from "./ingest/connect.ts";
import { ingest, type Options } from "./ingest/run.ts";

/** `npm run ingest`: loads many documents, and resumes where an earlier run of the same command stopped. */
const program = new Command("ingest")
  .description("Load files, folders, globs, URLs, lists of URLs (.txt) and JSONL into the knowledge base.")
  .argument("<what...>", "files, folders, globs, URLs, .txt files of URLs, .jsonl files of {content, title?} or {url}")
  .addOption(new Option("--url <url>", "the API").env("URL").default("http://127.0.0.1:3000"))
  .addOption(new Option("--key <key>", "an API key").env("KEY"))
  .option("--collection <name>", "the collection that the documents go to; default: `default`, or what a line names")
  .option("--manifest <file>", "where to note loaded documents; one for each tenant", ".ingest-manifest.jsonl")
  .option("--concurrency <n>", "documents at once, at most; fewer while the server says 429", toCount, 16)
  .option("--require-complete", "refuse a document of which something would be lost")
  .option("--prune", "remove the documents of files, and of lines of lists, that were deleted; asks before")
  .option("--yes", "remove them without asking")
  .option("--dry-run", "print what would be loaded, replaced, removed and left out, and change nothing")
  .option("--json", "print the account as JSON, and nothing else")
  .action(async (what: string[], options: Options) => {
    process.exitCode = await ingest(what, options).catch((error: unknown) => {
      if (!(error instanceof Refusal)) throw error;
      console.error(error.message);
      return REFUSED;
    });
  });

function toCount(text: string): number {
  const count = Number(text);
  if (Number.isInteger(count) && count >= 1 && count <= 256) return count;
  throw new InvalidArgumentError("give a number from 1 to 256");
}

await program.parseAsync();
