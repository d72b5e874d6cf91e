import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { chmod, chown, lstat, mkdir, mkdtemp, readdir, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { ensureServices } from "../../src/embedded/ensure.ts";
import { openServiceSecrets } from "../../src/embedded/service-secrets.ts";
import { makeLogger } from "../../src/observe/logger.ts";
import { openMasterKeys } from "../../src/tenancy/data-keys.ts";
import { makeClient } from "../support/http-client.ts";
import { needRoot, OTHER_UID, type OtherUser, startAsOther } from "../support/other-user.ts";
import { startPlatform } from "../support/start-platform.ts";

const logger = makeLogger({ level: "silent", name: "test" });

/** Tries to open every entry of a folder, again and again, until its standard input ends. Prints each that it could open, once. */
const readAll = `
  import { closeSync, openSync, readdirSync } from "node:fs";
  import { connect } from "node:net";
  const [folder] = process.argv.slice(1);
  const opened = new Set(), tried = new Set();
  const report = (what) => { if (!opened.has(what)) { opened.add(what); console.log("opened " + what); } };
  const look = (path) => {
    let names = [];
    try { names = readdirSync(path, { withFileTypes: true }); if (path !== folder) report(path); } catch {}
    for (const entry of names) {
      const inner = path + "/" + entry.name;
      tried.add(entry.name);
      if (entry.isDirectory()) { look(inner); knock(inner + "/mongo.sock"); knock(inner + "/redis.sock"); continue; }
      try { closeSync(openSync(inner, "r")); report(inner); } catch {}
      try { closeSync(openSync(inner, "a")); report(inner); } catch {}
    }
  };
  const knock = (path) => { const s = connect(path, () => { report(path); s.destroy(); }); s.on("error", () => {}); };
  const timer = setInterval(() => look(folder), 3);
  process.stdin.on("end", () => { clearInterval(timer); for (const name of tried) console.log("tried " + name); }).resume();
  console.log("ready");
`;

/** Makes a folder for all and listens in it as the services do; or with a second argument, a link to that. */
const squat = `
  import { chmodSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
  import { createServer } from "node:net";
  const [folder, target] = process.argv.slice(1);
  if (target) symlinkSync(target, folder);
  else { mkdirSync(folder); chmodSync(folder, 0o777); }
  const servers = target ? [] : ["mongo", "redis"].map((name) => {
    const server = createServer((socket) => {
      console.log("a client of " + name);
      socket.on("error", () => {}).on("data", () => socket.write("+OK\\r\\n+PONG\\r\\n"));
    });
    return server.listen(folder + "/" + name + ".sock", () => chmodSync(folder + "/" + name + ".sock", 0o777));
  });
  await Promise.all(servers.map((server) => new Promise((resolve) => server.on("listening", resolve))));
  process.stdin.on("end", () => { rmSync(folder, { recursive: true }); process.exit(); }).resume();
  console.log("ready");
`;

/** The folder of the sockets in the temporary folder, whose name anybody can work out. */
function predictableFolder(dataDir: string): string {
  const name = createHash("sha256").update(`0:${dataDir}`).digest("hex").slice(0, 12);
  return join(tmpdir(), `switchyard-${name}`);
}

describe("another user of the machine", function () {
  this.timeout(60_000);
  let folder = "";
  const others: OtherUser[] = [];
  const asOther = async (code: string, args: readonly string[]) => {
    const other = await startAsOther(code, args);
    others.push(other);
    return other;
  };

  beforeEach(async function () {
    needRoot(this);
    folder = await mkdtemp(join(tmpdir(), "switchyard-shared-"));
    await chmod(folder, 0o755);
  });
  afterEach(async () => {
    await Promise.all(others.splice(0).map((other) => other.end()));
    if (folder !== "") await rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  });

  const open = (dataDir: string) => ensureServices({ dataDir, mongo: true, redis: true, logger });
  const rejectionOf = async (dataDir: string): Promise<string> => {
    const outcome = await open(dataDir).catch((error: unknown) => error);
    if (outcome instanceof Error) return outcome.message;
    await (outcome as Awaited<ReturnType<typeof open>>).close();
    return "none: it has started";
  };

  it("can never open a file or a socket of a data folder that they can list", async () => {
    const other = await asOther(readAll, [folder]);
    const env = { DATA_DIR: folder, MONGODB_URL: "", REDIS_URL: "", MASTER_KEY: "" };
    const test = await startPlatform({ services: "private", env });
    try {
      const client = makeClient({ url: test.url, key: test.keys.owner });
      expect((await client.post("/rag/ingest", { content: "For us alone." })).status).to.equal(201);
      await openMasterKeys({ setting: undefined, dataDir: folder, mongoUrl: undefined });
      const entries = await readdir(folder, { recursive: true });
      expect(entries).to.include.members(["store.sqlite", "store.sqlite-wal", "redis", "run", "services.secret"]);
      expect(entries).to.include.members(["master.key", "run/mongo.sock", "run/redis.sock", "redis/appendonlydir"]);
      const modes = entries.map(async (name) => ({ name, mode: (await lstat(join(folder, name))).mode & 0o077 }));
      expect((await Promise.all(modes)).filter(({ mode }) => mode !== 0)).to.deep.equal([]);

      const secrets = Object.values(await openServiceSecrets(folder));
      const { stdout } = await promisify(execFile)("ps", ["-A", "-o", "args="], { maxBuffer: 1 << 24 });
      expect(
        secrets.filter((secret) => stdout.includes(secret)),
        "in the arguments of a process",
      ).to.deep.equal([]);
    } finally {
      await test.close();
    }
    const lines = await other.end();
    expect(lines.filter((line) => line.startsWith("opened"))).to.deep.equal([]);
    expect(lines).to.include.members(["tried store.sqlite", "tried store.sqlite-wal", "tried master.key"]);
  });

  it("gets no client by listening at a guessed path, and their folder and link are refused", async () => {
    const short = join(folder, "data");
    const beside = await asOther(squat, [predictableFolder(short)]);
    const services = await open(short);
    await services.close();
    expect(await beside.end(), "clients").to.deep.equal([]);

    const long = join(folder, "x".repeat(90)); // too long for a socket
    const place = predictableFolder(long);
    const before = await asOther(squat, [place]);
    expect(await rejectionOf(long)).to.include(`${place} (a folder of user ${OTHER_UID} with mode 777)`);
    expect(await before.end(), "clients").to.deep.equal([]);

    const own = join(folder, "own");
    await mkdir(own, { mode: 0o700 });
    const link = await asOther(squat, [place, own]);
    expect(await rejectionOf(long)).to.include(`${place} (a link of user ${OTHER_UID}`);
    await link.end();

    const later = await open(long);
    expect((await lstat(place)).mode & 0o777).to.equal(0o700);
    await later.close();
    expect(await lstat(place).catch(() => "removed")).to.equal("removed");
  });

  it("owns no part of a data folder: one of theirs, or one that they can write to, is refused", async () => {
    const theirs = join(folder, "theirs");
    await mkdir(theirs, { mode: 0o755 });
    await chown(theirs, OTHER_UID, OTHER_UID);
    expect(await rejectionOf(theirs)).to.include(
      `${theirs} (a folder of user ${OTHER_UID} with mode 755) does not belong`,
    );

    const linked = join(folder, "linked");
    await mkdir(join(folder, "target"), { mode: 0o700 });
    await symlink(join(folder, "target"), linked);
    await promisify(execFile)("chown", ["-h", String(OTHER_UID), linked]);
    expect(await rejectionOf(linked)).to.include(`${linked} (a link of user ${OTHER_UID}`);

    const open = join(folder, "open");
    await mkdir(open);
    await chmod(open, 0o777);
    expect(await rejectionOf(open)).to.include("`chmod 700`");
    await chmod(open, 0o700);
    await chown(open, 0, 0);
    for (const name of ["services.secret", "run"]) {
      await rm(join(open, name), { recursive: true, force: true });
      await mkdir(join(open, name));
      await chown(join(open, name), OTHER_UID, OTHER_UID);
      expect(await rejectionOf(open)).to.include(`${join(open, name)} (a folder of user ${OTHER_UID}`);
      await rm(join(open, name), { recursive: true });
    }
  });

  it("loses access to files that an earlier version left open", async () => {
    await (await open(folder)).close();
    for (const name of ["store.sqlite", "services.secret"]) await chmod(join(folder, name), 0o644);
    const secret = await readFile(join(folder, "services.secret"), "utf8");
    const services = await open(folder);
    try {
      for (const name of ["store.sqlite", "services.secret"]) {
        expect((await lstat(join(folder, name))).mode & 0o777, name).to.equal(0o600);
      }
      expect(await readFile(join(folder, "services.secret"), "utf8")).to.equal(secret);
    } finally {
      await services.close();
    }
  });
});
