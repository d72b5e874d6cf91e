import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** A Chromium that starts, and what its processes need beside this one's environment. */
export type Chromium = { executablePath: string; env: Record<string, string> };

/** There is no Chromium here, and none could be installed. */
export class NoBrowser extends Error {}

const unpacked = fileURLToPath(new URL("../../../node_modules/.chromium", import.meta.url));
/** What apt is given for one of its commands, in ms: Chromium with its libraries is some 150 MB. */
const APT_TIMEOUT_MS = 900_000;
/** What a Chromium is given to print its version, in ms. */
const START_TIMEOUT_MS = 30_000;

/**
 * A Chromium for tests: the one that `CHROMIUM` names, or is installed; on Debian it is installed by root, and unpacked into
 * node_modules by any other user, who needs no rights for that.
 * @throws NoBrowser
 */
export function provideChromium(say: (text: string) => void): Chromium {
  const named = process.env.CHROMIUM;
  if (named) return orFail({ executablePath: named, env: {} }, `CHROMIUM names ${named}, which does not start.`);
  const found = installed() ?? readUnpacked();
  if (found) return found;
  if (existsSync("/usr/bin/apt-get")) {
    const isRoot = process.getuid?.() === 0;
    say(`${isRoot ? "installing" : "unpacking"} Debian's Chromium (about a minute) …`);
    const made = isRoot ? install() : unpack();
    if (made) return made;
  }
  throw new NoBrowser(
    "There is no Chromium: install Chromium or Chrome, name its program in CHROMIUM, and run this again.",
  );
}

/** Where Debian's package `chromium`, or Google's Chrome, puts its program. */
const programs = ["/usr/bin/chromium", "/usr/bin/google-chrome"];

function installed(): Chromium | undefined {
  for (const executablePath of programs) {
    const chromium = ifStarts({ executablePath, env: {} });
    if (chromium) return chromium;
  }
  return undefined;
}

function ifStarts(chromium: Chromium): Chromium | undefined {
  const { executablePath, env } = chromium;
  const options = { encoding: "utf8", env: { ...process.env, ...env }, timeout: START_TIMEOUT_MS } as const;
  return spawnSync(executablePath, ["--version"], options).status === 0 ? chromium : undefined;
}

function orFail(chromium: Chromium, message: string): Chromium {
  const usable = ifStarts(chromium);
  if (!usable) throw new NoBrowser(message);
  return usable;
}

/** Runs a command quietly; what it printed, or undefined when it failed. */
function run(command: string, args: readonly string[], cwd?: string): string | undefined {
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", LC_ALL: "C" };
  const options = { encoding: "utf8", env, timeout: APT_TIMEOUT_MS, maxBuffer: 64 * 1024 * 1024 } as const;
  const { status, stdout } = spawnSync(command, args, { ...options, ...(cwd === undefined ? {} : { cwd }) });
  return status === 0 ? stdout : undefined;
}

const installArgs = ["-y", "--no-install-recommends", "install", "chromium"];

function install(): Chromium | undefined {
  const apt = (args: readonly string[]) => run("apt-get", ["-qq", ...args]) !== undefined;
  if (!apt(installArgs)) apt(["update"]) && apt(installArgs);
  return installed();
}

/** Downloads the package, and those that it needs and this machine lacks, and unpacks them into node_modules. */
function unpack(): Chromium | undefined {
  const folder = `${unpacked}.new`;
  rmSync(folder, { recursive: true, force: true });
  const debs = join(folder, "debs");
  mkdirSync(join(folder, "state", "lists", "partial"), { recursive: true });
  mkdirSync(join(folder, "cache", "archives", "partial"), { recursive: true });
  mkdirSync(debs);
  // Lists of its own: those of the machine may be absent or old, and only root may renew them.
  const own = [
    ...["-o", `Dir::State=${join(folder, "state")}`],
    ...["-o", `Dir::Cache=${join(folder, "cache")}`],
    ...["-o", "Dir::State::status=/var/lib/dpkg/status"],
  ];
  if (run("apt-get", ["-qq", ...own, "update"]) === undefined) return undefined;
  const plan = run("apt-get", [...own, "-s", ...installArgs]) ?? "";
  const packages = [...plan.matchAll(/^Inst (\S+) (?:\[\S+\] )?\((\S+)/gm)].map(
    ([, name, version]) => `${name}=${version}`,
  );
  if (packages.length === 0 || run("apt-get", ["-qq", ...own, "download", ...packages], debs) === undefined)
    return undefined;
  for (const deb of readdirSync(debs)) {
    if (run("dpkg-deb", ["-x", join(debs, deb), folder]) === undefined) return undefined;
  }
  for (const name of ["debs", "state", "cache"]) rmSync(join(folder, name), { recursive: true, force: true });
  rmSync(unpacked, { recursive: true, force: true });
  renameSync(folder, unpacked);
  return readUnpacked();
}

/** The unpacked program with its libraries and fonts, which stand in no folder where the system looks for them. */
function readUnpacked(): Chromium | undefined {
  const executablePath = join(unpacked, "usr", "lib", "chromium", "chromium");
  if (!existsSync(executablePath)) return undefined;
  const roots = [join(unpacked, "usr", "lib"), join(unpacked, "lib")].filter((folder) => existsSync(folder));
  const machines = roots.flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => name.includes("-linux-gnu"))
      .map((name) => join(folder, name)),
  );
  const libraries = machines.flatMap((folder) => [folder, join(folder, "pulseaudio"), join(folder, "nss")]);
  const fonts = join(unpacked, "fonts.conf");
  const folders = [join(unpacked, "usr", "share", "fonts"), "/usr/share/fonts"].map((folder) => `<dir>${folder}</dir>`);
  const cache = `<cachedir>${join(unpacked, "font-cache")}</cachedir>`;
  writeFileSync(fonts, `<?xml version="1.0"?><fontconfig>${folders.join("")}${cache}</fontconfig>\n`);
  return ifStarts({ executablePath, env: { LD_LIBRARY_PATH: libraries.join(":"), FONTCONFIG_FILE: fonts } });
}
