import { Command } from "commander";
import { type Verification, verifyTrail } from "../src/agents/audit.ts";
import { ConfigError, loadConfig } from "../src/config.ts";
import { AppError, notFound } from "../src/errors.ts";
import { openPlatform } from "../src/platform.ts";

type VerifyOptions = { head?: string; json?: boolean };

/** `npm run audit`: proves the trails of agents' runs. Exit code 0 when they hold, 1 when one does not, 2 when none could be read. */
const program = new Command("audit");

program
  .command("verify")
  .description(
    "compute the hash chain of each run anew from the database, and tell the first place where it does not hold",
  )
  .argument("<runId...>")
  .option("--head <hash>", "the `auditHead` that was told when the run ended: the chain must lead to it")
  .option("--json", "one line of JSON a run")
  .action(async (runIds: string[], options: VerifyOptions) => {
    const platform = await openPlatform({ ...loadConfig(), logLevel: "error" }, { name: "audit" });
    try {
      for (const runId of runIds) {
        const run = await platform.store.agentRuns.getForOperator(runId);
        if (!run) throw notFound(`run ${runId}`);
        const found = verifyTrail(run, await platform.store.audit.list(run.tenantId, runId));
        const verification = compareHead(found, options.head);
        if (!verification.verified) process.exitCode = 1;
        const about = { runId, tenantId: run.tenantId, agentId: run.agentId, agentVersion: run.agentVersion };
        const hasEnded = run.end !== undefined;
        console.log(
          options.json
            ? JSON.stringify({ ...about, hasEnded, ...verification })
            : toText(runId, verification, hasEnded),
        );
      }
    } finally {
      await platform.close();
    }
  });

/** Who can write the database can compute a whole chain anew; a hash that was kept elsewhere tells that too. */
function compareHead(found: Verification, head: string | undefined): Verification {
  if (head === undefined || !found.verified || found.head === head) return found;
  const problem = "The chain holds in itself, but leads to another hash than the one that was given.";
  return { ...found, verified: false, breach: { seq: Math.max(0, found.entries - 1), problem } };
}

function toText(runId: string, { verified, entries, head, breach }: Verification, hasEnded: boolean): string {
  if (verified) return `${runId}: the trail holds, ${entries} entries${hasEnded ? "" : " so far"}, head ${head}`;
  return `${runId}: THE TRAIL IS BROKEN at entry ${breach?.seq ?? 0} of ${entries}: ${breach?.problem ?? ""}`;
}

try {
  await program.parseAsync();
} catch (error) {
  if (!(error instanceof AppError) && !(error instanceof ConfigError)) throw error;
  console.error(error.message);
  process.exitCode = 2;
}
