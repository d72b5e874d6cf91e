import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { loadConfig } from "../../src/config/config.ts";
import { openPlatform } from "../../src/platform.ts";
import { startWorkers } from "../../workers/start-workers.ts";
import { bareEnvironment } from "../support/compile-cache.ts";
import { makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { skipTest } from "../support/skip-test.ts";
import { startPlatform } from "../support/start-platform.ts";

/** `npm run backup` or `npm run restore`, as a process of its own. */
function command(which: "save" | "restore", folder: string, env: Record<string, string>) {
  const script = fileURLToPath(new URL("../../scripts/backup.ts", import.meta.url));
  return new Promise<{ code: number | string; stdout: string; stderr: string }>((resolve) => {
    const options = { env: { ...bareEnvironment, ...env }, timeout: 60_000 };
    execFile(process.execPath, [script, which, folder], options, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, stdout, stderr }),
    );
  });
}

describe("a backup", function () {
  this.timeout(120_000);
  let folder: string;

  before(async function () {
    if (process.env.MONGODB_URL) skipTest(this, "the embedded store is what is saved");
    folder = await mkdtemp(join(tmpdir(), "switchyard-backup-"));
  });
  after(() => folder && rm(folder, { recursive: true, force: true }));

  it("that is made under load holds every write acknowledged before it began", async () => {
    const saved = join(folder, "saved");
    const acknowledged: string[] = [];
    const load = new AbortController();
    const test = await startPlatform({ services: "private", workers: false });
    const { MONGODB_DB = "", REDIS_PREFIX = "", DATA_DIR = "" } = test.env;
    try {
      const owner = makeClient({ url: test.url, key: test.keys.owner });
      const submit = async () => {
        while (!load.signal.aborted) {
          const options = { headers: { prefer: "respond-async" } };
          const { status, body } = await owner.post(
            "/rag/ingest",
            { content: `Marmot ${acknowledged.length}` },
            options,
          );
          if (status === 202) acknowledged.push((body as { documentId: string }).documentId);
        }
      };
      const writers = [submit(), submit(), submit()];
      await pollUntil(() => acknowledged.length >= 30, { what: "documents", timeoutMs: 30_000 });
      const before = [...acknowledged];
      const { code, stdout, stderr } = await command("save", saved, { DATA_DIR, MONGODB_DB, REDIS_PREFIX });
      load.abort();
      await Promise.all(writers);
      expect(stderr).to.equal(`store: ${DATA_DIR}\n`);
      expect(code).to.equal(0);
      expect(stdout).to.match(/^saved store\.sqlite, master\.key.* in /);
      expect(acknowledged.length, "written meanwhile").to.be.above(before.length);
      acknowledged.splice(before.length);
      expect(await readFile(join(saved, "master.key"))).to.deep.equal(await readFile(join(DATA_DIR, "master.key")));
    } finally {
      load.abort();
      await test.close();
    }
    for (const name of await readdir(saved)) expect((await stat(join(saved, name))).mode & 0o077, name).to.equal(0);

    const dataDir = join(folder, "restored");
    const restored = await command("restore", saved, { DATA_DIR: dataDir });
    expect(restored.code, restored.stderr).to.equal(0);
    const env = { DATA_DIR: dataDir, MONGODB_DB, REDIS_PREFIX, LOG_LEVEL: "silent", RECONCILE_EVERY_MS: "200" };
    const platform = await openPlatform(loadConfig(env), { name: "test" });
    try {
      const tenantId = await platform.tenancy.findTenant("first");
      const found = await Promise.all(acknowledged.map((id) => platform.store.documents.get(tenantId, id)));
      expect(found.filter((document) => document === null)).to.have.lengthOf(0);
      const workers = await startWorkers(platform, { extra: [], concurrencyFactor: 1, shutdownGraceMs: 1_000 });
      const last = acknowledged.at(-1) ?? "";
      const isIndexed = async () => (await platform.store.documents.get(tenantId, last))?.status === "indexed";
      await pollUntil(isIndexed, { what: "a job that was queued, though Redis was not saved", timeoutMs: 60_000 });
      await workers.close();
    } finally {
      await platform.close();
    }
  });

  it("needs an empty folder, and is restored only into an empty one", async () => {
    const dataDir = join(folder, "restored");
    const full = await command("save", folder, { DATA_DIR: dataDir });
    expect([full.code, full.stderr.split("\n").at(1)]).to.deep.equal([2, `${folder} is not empty: name a new folder.`]);
    const taken = await command("restore", join(folder, "saved"), { DATA_DIR: dataDir });
    expect([taken.code, taken.stderr]).to.deep.equal([
      2,
      `DATA_DIR: ${dataDir} is not empty. Stop Switchyard and move it, or set another one.\n`,
    ]);
    const none = await command("restore", join(folder, "nothing"), { DATA_DIR: join(folder, "new") });
    expect([none.code, none.stderr]).to.deep.equal([
      2,
      `${join(folder, "nothing")} holds no backup: it has no store.sqlite.\n`,
    ]);
  });
});
