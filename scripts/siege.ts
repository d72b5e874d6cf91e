import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { runSiege } from "./siege/run.ts";

type Options = { seconds: number; workers: number; seed: number };

const number = (from: number) => (text: string) => {
  const value = Number(text);
  if (!(value >= from)) throw new InvalidArgumentError(`It must be a number of at least ${from}.`);
  return value;
};

/** `npm run siege`: the walls between tenants as a program. Exit code 0 when every attack is repelled, 1 when one is not. */
const program = new Command("siege")
  .description(
    "attack the platform in one way after the other while another tenant works; report what that tenant notices",
  )
  .argument("[attacks...]", "names of attacks; all when there are none")
  .option("--seconds <n>", "how long each attack lasts", number(1), 12)
  .option("--workers <n>", "processes that run jobs", number(1), 2)
  .option("--seed <n>", "the same seed gives the same calls of the victim", number(0), 1)
  .action(async (names: string[], { seconds, workers, seed }: Options) => {
    const folder = await mkdtemp(join(tmpdir(), "switchyard-siege-"));
    const isHeld = await runSiege({ names, attackMs: seconds * 1_000, workers, seed, folder, say: console.log });
    if (isHeld) {
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
      return;
    }
    process.exitCode = 1;
    console.error(`\nThe data and the logs of the processes are in ${folder}.`);
  });

await program.parseAsync();
