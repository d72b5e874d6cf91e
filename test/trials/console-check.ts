import { Command } from "commander";
import { withDisposables } from "../../src/lib/disposables.ts";
import { checkConsole } from "./console-check/check.ts";
import { NoBrowser } from "./console-check/provide-chromium.ts";
import { measureScale } from "./console-check/scale.ts";

/**
 * `npm run console-check`: does in a Chromium what a person does in the console, and looks at each screen with axe, in light
 * and dark and on a narrow screen. Exit code 0 when all is well; 1 when not; 2 when there is no browser.
 */
const program = new Command("console-check")
  .description("use the console in a real browser")
  .option("--pictures <folder>", "keep a picture of each screen here")
  .option("--scale", "measure lists and first paint with a full store instead; needs a quiet machine")
  .parse();

try {
  const faults = await withDisposables(async (disposables) => {
    const { scale, ...options } = program.opts<{ pictures?: string; scale?: boolean }>();
    const found = await (scale ? measureScale(disposables) : checkConsole(disposables, options));
    await disposables.close();
    return found;
  });
  for (const fault of faults) console.error(`FAULT ${fault}`);
  console.log(faults.length === 0 ? "All is well." : `${faults.length} faults.`);
  process.exitCode = faults.length === 0 ? 0 : 1;
} catch (error) {
  console.error(error instanceof NoBrowser ? error.message : error);
  process.exitCode = error instanceof NoBrowser ? 2 : 1;
}
