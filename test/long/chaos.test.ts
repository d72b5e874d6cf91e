import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { skipTest } from "../support/skip-test.ts";
import { faultKinds } from "../trials/chaos/schedule.ts";

const script = fileURLToPath(new URL("../trials/chaos.ts", import.meta.url));
/** Twelve seconds with ten faults, one of each kind. */
const args = ["--minutes", "0.2", "--every", "1", "--tenants", "2", "--seed", "3", "--json"];

type Outcome = {
  faults: Record<string, number>;
  accepted: number;
  checks: { promise: string; found: string; breaches: string[] }[];
};

describe("npm run chaos", function () {
  this.timeout(300_000);

  it("keeps every promise while all parts are killed, frozen and restarted under load", async function () {
    if (process.env.MONGODB_URL || process.env.REDIS_URL) return skipTest(this, "only embedded services can be killed");
    const { code, stdout, stderr } = await run();
    expect(stdout, stderr).to.match(/^\{.*\}\n$/);
    const outcome = JSON.parse(stdout) as Outcome; // what --json prints
    const broken = outcome.checks.filter(({ breaches }) => breaches.length > 0);
    expect(broken, stderr).to.deep.equal([]);
    // A fault needs something to befall: now and then nothing of its kind is left at its time.
    expect(Object.keys(outcome.faults).length).to.be.within(faultKinds.length - 2, faultKinds.length);
    expect(outcome.accepted).to.be.above(5);
    expect(outcome.checks.map(({ promise }) => promise)).to.include.members([
      "every accepted job ends, once",
      "audit chains verify",
      "each step of a workflow is recorded once, and nothing goes on without a decision",
      "each effect outside happens once, by its idempotency key",
      "each call that needs an approval is made with the arguments that were approved",
      "nothing is charged twice, and all that the provider asks for is charged at its price",
      "no value that guards mask or block is anywhere",
      "no tenant sees another's data",
    ]);
    expect(code).to.equal(0);
  });
});

function run() {
  return new Promise<{ code: number | string; stdout: string; stderr: string }>((resolve) => {
    execFile(process.execPath, [script, ...args], { timeout: 290_000 }, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, stdout, stderr }),
    );
  });
}
