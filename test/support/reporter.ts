import { relative } from "node:path";
import Mocha from "mocha";

/** Mocha's own report, closed by one plain line that says how many tests there were. */
class CountingReporter extends Mocha.reporters.Spec {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    // A file that does not load, or ends its process, fails outside of all suites: then the error alone names it.
    runner.on("fail", (test, error: Error & { file?: string }) => {
      if (error.file && !test.file) test.title += ` (${relative(process.cwd(), error.file)})`;
    });
    super(runner, options);
  }

  /** After the shared services were closed: `failures` counts that too. */
  override done(failures: number, end: (failures: number) => void): void {
    const { passes, pending } = this.stats;
    const skipped = pending > 0 ? `, ${pending} skipped` : "";
    process.stdout.write(`\n${passes} passed, ${failures} failed${skipped}\n`);
    end(failures);
  }
}

// biome-ignore lint/style/noDefaultExport: Mocha loads a reporter by its default export
export default CountingReporter;
