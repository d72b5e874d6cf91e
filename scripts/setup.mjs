// Installs what a fresh clone lacks, says what it does, and does nothing when all is there. Plain Node from 20 on, no
// dependency: it runs before there are any. `--quiet` says nothing when there is nothing to do.
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const bin = join(root, "node_modules", ".bin");
const stamp = join(root, "node_modules", ".setup-stamp");
const isQuiet = process.argv.includes("--quiet");
const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH ?? ""}` };

const done = [installPackages(), checkNode(), provideRedis()].some(Boolean);
if (done) say("ready");
else if (!isQuiet) say("all is there");

function say(text) {
  console.log(`setup: ${text}`);
}

function stop(text) {
  console.error(`setup: ${text}`);
  process.exit(1);
}

/** Runs a command with its output hidden, and prints it when the command fails. */
function run(command, args, options = {}) {
  const result = spawnSync(command, args, { cwd: root, encoding: "utf8", env, ...options });
  if (result.status === 0) return true;
  if (!options.mayFail) {
    console.error(result.stdout ?? "", result.stderr ?? "");
    stop(`\`${command} ${args.join(" ")}\` failed${result.error ? `: ${result.error.message}` : ""}`);
  }
  return false;
}

/** npm packages as locked; they are there when the lock's hash is the one they were installed from. */
function installPackages() {
  const lock = createHash("sha256")
    .update(readFileSync(join(root, "package-lock.json")))
    .digest("hex");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === lock) return false;
  say("installing npm packages (about a minute) …");
  const isWindows = process.platform === "win32";
  // Not `npm ci`: it refuses a lock that lacks the optional binaries of other platforms; this installs what is locked too.
  // An install script that package.json does not allow stops the installation, with an npm that knows the option (11.19).
  const options = ["--no-save", "--strict-allow-scripts", "--loglevel=error", "--no-audit", "--no-fund"];
  run("npm", ["install", ...options], { shell: isWindows });
  writeFileSync(stamp, lock);
  return true;
}

/** The pinned Node comes as an npm package whose install script fetches it; a policy that blocks scripts leaves it out. */
function checkNode() {
  const node = join(bin, "node");
  const version = existsSync(node) ? execFileSync(node, ["--version"], { encoding: "utf8" }).trim() : "none";
  const isUsable =
    version.startsWith("v24.") || (version === "none" && Number(process.versions.node.split(".")[0]) >= 24);
  if (isUsable) return false;
  say(`the pinned Node is missing (found ${version}); running its install script …`);
  run("npm", ["rebuild", "node", "--loglevel=error"], { shell: process.platform === "win32" });
  if (existsSync(node)) return true;
  return stop(
    "Node 24 is needed: install it, or allow the install script of the npm package `node`, and run this again.",
  );
}

/**
 * A redis-server binary, unless REDIS_URL names a server or one is on the PATH. On Debian the binary of the package
 * `redis-tools` serves: installed, or unpacked into node_modules, which needs no root, or installed by this script.
 */
function provideRedis() {
  if (process.env.REDIS_URL || isRedisServer("redis-server")) return false;
  if (linkRedis("/usr/bin")) return true;
  if (process.platform === "darwin") return stop("redis-server is missing: run `brew install redis`, then this again.");
  if (!existsSync("/usr/bin/apt-get")) {
    return stop("redis-server is missing: install Redis 6.2 or newer, or set REDIS_URL, and run this again.");
  }
  say("unpacking a private redis-server from Debian's redis-tools …");
  if (unpackRedis() || installRedis()) return true;
  return stop("redis-server could not be installed. Run `apt-get install redis-tools` as root, or set REDIS_URL.");
}

/** Downloads the package and unpacks it, which any user may. False when its lists or libraries are missing. */
function unpackRedis() {
  const folder = join(root, "node_modules", ".redis");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  // A download as root would drop its rights to a user who cannot write to a private folder.
  const asRoot = process.getuid?.() === 0 ? ["-o", "APT::Sandbox::User=root"] : [];
  if (!run("apt-get", ["-qq", ...asRoot, "download", "redis-tools"], { cwd: folder, mayFail: true })) return false;
  const [deb] = readdirSync(folder);
  return run("dpkg-deb", ["-x", deb, "."], { cwd: folder, mayFail: true }) && linkRedis(join(folder, "usr", "bin"));
}

function installRedis() {
  const isRoot = process.getuid?.() === 0;
  const apt = (...args) => {
    const [first, ...rest] = [
      ...(isRoot ? [] : ["sudo", "-n"]),
      "apt-get",
      "-qq",
      "-y",
      "--no-install-recommends",
      ...args,
    ];
    return run(first, rest, { mayFail: true, env: { ...env, DEBIAN_FRONTEND: "noninteractive" } });
  };
  if (!apt("install", "redis-tools")) apt("update") && apt("install", "redis-tools");
  return linkRedis("/usr/bin");
}

/** Links the package's binary as redis-server: server and checker are one binary that looks at its own name. */
function linkRedis(folder) {
  const checker = join(folder, "redis-check-rdb");
  const link = join(bin, "redis-server");
  if (!existsSync(checker)) return false;
  rmSync(link, { force: true });
  symlinkSync(checker, link);
  if (!isRedisServer("redis-server")) return false;
  say("linked redis-server into node_modules/.bin");
  return true;
}

function isRedisServer(command) {
  const result = spawnSync(command, ["--version"], { encoding: "utf8", env });
  return result.status === 0 && /redis server/i.test(result.stdout);
}
