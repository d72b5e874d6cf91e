import { execFile } from "node:child_process";
import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const INSTALL_TIMEOUT_MS = 600_000;
const packages = fileURLToPath(new URL("packages", import.meta.url));
/** Beside the product's own packages, where no check of the source looks. */
const folder = fileURLToPath(new URL("../../../node_modules/.clients", import.meta.url));

/** The packages of the clients cannot be had here. */
export class NoClients extends Error {
  override name = "NoClients";
}

/** Installs the clients as `packages` locks them, unless they are there; the result is where their commands are. @throws NoClients */
export async function installClients(): Promise<string> {
  const installed = join(folder, "node_modules");
  const lock = await readFile(join(packages, "package-lock.json"), "utf8");
  const stamp = join(installed, ".installed-lock.json");
  if ((await readFile(stamp, "utf8").catch(() => "")) !== lock) {
    await cp(packages, folder, { recursive: true });
    console.log("installing the clients from npm (1 GB) …");
    // As `scripts/setup.mjs` does: `npm ci` refuses a lock that lacks the binaries of other platforms.
    const options = ["--no-save", "--strict-allow-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    await run("npm", ["install", ...options], { cwd: folder, timeout: INSTALL_TIMEOUT_MS }).catch((error: Error) => {
      throw new NoClients(`npm could not install the clients: ${error.message}`);
    });
    await writeFile(stamp, lock);
  }
  return join(installed, ".bin");
}
