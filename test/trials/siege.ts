import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { chooseAttacks, runSiege } from "./siege/run.ts";

type Options = { only: string[]; list?: true; seconds: number; workers: number; seed: number };

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
  .option("--only <attacks...>", "run only the attacks of these names", [])
  .option("--list", "print the attacks and run none")
  .option("--seconds <n>", "how long each attack lasts", number(1), 20)
  .option("--workers <n>", "processes that run jobs", number(1), 2)
  .option("--seed <n>", "the same seed gives the same calls of the victim", number(0), 1)
  .action(async ({ only, list, seconds, workers, seed }: Options) => {
    const attacks = chooseAttacks(only);
    if (typeof attacks === "string") return program.error(attacks);
    if (list) return void attacks.map(({ name, about }) => console.log(`${name.padEnd(24)} ${about}`));
    const folder = await mkdtemp(join(tmpdir(), "switchyard-siege-"));
    const isHeld = await runSiege({ attacks, attackMs: seconds * 1_000, workers, seed, folder, say: console.log });
    if (isHeld) {
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
      return;
    }
    process.exitCode = 1;
    console.error(`\nThe data and the logs of the processes are in ${folder}.`);
  });

await program.parseAsync();
