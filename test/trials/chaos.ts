import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command, InvalidArgumentError, Option } from "commander";
import { isWhole, toReport } from "./chaos/report.ts";
import { runChaos } from "./chaos/run.ts";
import { type JobWorkName, jobWorkNames } from "./chaos/work.ts";

type Options = {
  minutes: number;
  every: number;
  seed: number;
  tenants: number;
  apis: number;
  workers: number;
  works?: JobWorkName[];
  jobs?: number;
  json?: boolean;
};

const number = (from: number) => (text: string) => {
  const value = Number(text);
  if (!(value >= from)) throw new InvalidArgumentError(`It must be a number of at least ${from}.`);
  return value;
};

/** `npm run chaos`: the promises under failure as a program. Exit code 0 when all are kept, 1 when one is broken. */
const program = new Command("chaos")
  .description("load the platform with mixed work while its parts are killed, frozen and restarted; take the account")
  .option("--minutes <n>", "how long there are load and faults", number(0.1), 1)
  .option("--every <seconds>", "mean time between two faults", number(0.2), 2.5)
  .option("--seed <n>", "the same seed gives the same faults at the same times", number(0), 1)
  .option("--tenants <n>", "tenants that work at once", number(2), 3)
  .option("--apis <n>", "processes of the API", number(1), 2)
  .option("--workers <n>", "processes that run jobs", number(1), 2)
  .addOption(new Option("--works <names...>", "these kinds of work alone").choices(jobWorkNames))
  .option("--jobs <n>", "jobs that are accepted at most, evenly over the time", number(1))
  .option("--json", "print the account as JSON")
  .action(async ({ minutes, every, json, ...options }: Options) => {
    const folder = await mkdtemp(join(tmpdir(), "switchyard-chaos-"));
    const outcome = await runChaos({
      ...options,
      durationMs: minutes * 60_000,
      everyMs: every * 1_000,
      folder,
      say: (text) => console.error(text),
    });
    console.log(json ? JSON.stringify(outcome) : `\n${toReport(outcome)}`);
    if (isWhole(outcome)) {
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
      return;
    }
    process.exitCode = 1;
    console.error(`\nThe data and the logs of the processes are in ${folder}.`);
  });

await program.parseAsync();
