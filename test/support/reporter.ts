import Mocha from "mocha";

/** Mocha's own report, closed by one plain line that says how many tests there were. */
class CountingReporter extends Mocha.reporters.Spec {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options);
    runner.once("end", () => {
      const { passes, failures, pending } = this.stats;
      const skipped = pending > 0 ? `, ${pending} skipped` : "";
      process.stdout.write(`\n${passes} passed, ${failures} failed${skipped}\n`);
    });
  }
}

// biome-ignore lint/style/noDefaultExport: Mocha loads a reporter by its default export
export default CountingReporter;
