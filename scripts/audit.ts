import { Command } from "commander";
import { type Verification, verifyAuditLog } from "../src/agents/audit.ts";
import { AppError, ConfigError, notFound } from "../src/lib/errors.ts";
import { ApiRejection, keyOption, openApi, urlOption } from "./cli/api.ts";
import { withStore } from "./cli/open-store.ts";

type VerifyOptions = { head?: string; json?: boolean; url: string; key?: string; store?: boolean };
type Found = Verification & { about: Record<string, unknown>; hasEnded: boolean };
type Reader = (runId: string) => Promise<Found>;

/** `npm run audit`: proves the audit logs of agents' runs. Exit code 0 when they hold, 1 when one does not, 2 when none could be read. */
const program = new Command("audit");

program
  .command("verify")
  .description("compute the hash chain of each run again, and report the first place where it does not hold")
  .argument("<runId...>")
  .option("--head <hash>", "the `auditHead` of the run's response: the chain must lead to it")
  .option("--json", "one line of JSON a run")
  .addOption(urlOption())
  .addOption(keyOption())
  .option("--store", "read the database itself, although a key is given")
  .action(async (runIds: string[], options: VerifyOptions) => {
    const verifyAll = async (read: Reader) => {
      for (const runId of runIds) print(await read(runId), runId, options);
    };
    const { url, key } = options;
    if (key !== undefined && !options.store) await verifyAll(apiReader({ url, key }));
    else await withStore("audit", (platform) => verifyAll(storeReader(platform.store)));
  });

type Store = Parameters<Parameters<typeof withStore>[1]>[0]["store"];

function storeReader(store: Store): Reader {
  return async (runId) => {
    const run = await store.agentRuns.getForOperator(runId);
    if (!run) throw notFound(`run ${runId}`);
    const { tenantId, agentId, agentVersion } = run;
    const verification = verifyAuditLog(run, await store.audit.list(tenantId, runId));
    return { ...verification, about: { runId, tenantId, agentId, agentVersion }, hasEnded: run.end !== undefined };
  };
}

/** The API computes the chain at each reading. */
function apiReader(options: { url: string; key: string }): Reader {
  const api = openApi(options);
  return async (runId) => {
    const run = await api("GET", `/runs/${encodeURIComponent(runId)}/trail`);
    const { agentId, agentVersion, finishedAt } = run;
    const verification = run.integrity as Verification; // of the response's schema
    return { ...verification, about: { runId, agentId, agentVersion }, hasEnded: finishedAt !== undefined };
  };
}

function print({ about, hasEnded, ...verification }: Found, runId: string, { head, json }: VerifyOptions): void {
  // Someone who can write the database can compute a whole chain again. A head that was kept elsewhere shows that too.
  const isOther = verification.verified && head !== undefined && head !== verification.head;
  if (!verification.verified || isOther) process.exitCode = 1;
  if (json) {
    const problem = "The chain holds, but does not lead to the given head.";
    const breach = { seq: Math.max(0, verification.entries - 1), problem };
    const shown = isOther ? { ...verification, verified: false, breach } : verification;
    console.log(JSON.stringify({ ...about, hasEnded, ...shown }));
  } else console.log(`${runId}: ${isOther ? otherHead(verification.head) : toText(verification, hasEnded)}`);
}

function otherHead(head: string): string {
  return `THE AUDIT LOG IS ANOTHER ONE: its chain holds, but leads to ${head}, not to the given head`;
}

function toText({ verified, entries, head, breach }: Verification, hasEnded: boolean): string {
  if (verified) return `the audit log holds, ${entries} entries${hasEnded ? "" : " so far"}, head ${head}`;
  return `THE AUDIT LOG IS BROKEN at entry ${breach?.seq ?? 0} of ${entries}: ${breach?.problem ?? ""}`;
}

try {
  await program.parseAsync();
} catch (error) {
  const isExpected = error instanceof AppError || error instanceof ConfigError || error instanceof ApiRejection;
  if (!isExpected) throw error;
  console.error(error.message);
  process.exitCode = 2;
}
