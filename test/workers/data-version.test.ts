import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { Binary, type Db } from "mongodb";
import { ensureServices, type Services } from "../../src/embedded/ensure.ts";
import { ConfigError } from "../../src/lib/errors.ts";
import { makeLogger } from "../../src/observe/logger.ts";
import { connectStore, type StoreConnection } from "../../src/store/connect.ts";
import { migrateData } from "../../src/store/data-version.ts";
import { migrations, oldestBeside } from "../../src/store/migrations.ts";
import { openStore } from "../../src/store/store.ts";
import { LOCK_MS, loggedSteps } from "../support/migrate-child.ts";

const logger = makeLogger({ level: "silent", name: "test" });
const childPath = fileURLToPath(new URL("../support/migrate-child.ts", import.meta.url));

describe("the version of the stored data", function () {
  this.timeout(60_000);
  let dataDir: string;
  let services: Services | undefined;
  let url: string;
  let connection: StoreConnection;
  let db: Db;
  let databases = 0;

  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), "switchyard-version-"));
    if (!process.env.MONGODB_URL) services = await ensureServices({ dataDir, mongo: true, redis: false, logger });
    url = process.env.MONGODB_URL ?? services?.mongoUrl ?? "";
  });
  after(async () => {
    await services?.close();
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  });
  beforeEach(async () => {
    databases += 1;
    connection = await connectStore({ url, db: `version_${process.pid}_${databases}`, timeoutMs: 10_000 });
    db = connection.db;
  });
  afterEach(async () => {
    await db.dropDatabase();
    await connection.close();
  });

  const migrate = (more: object = {}) =>
    migrateData(db, {
      migrations: loggedSteps(),
      oldestBeside: 2,
      logger: { info: () => undefined },
      lockMs: LOCK_MS,
      ...more,
    });
  const stepsRun = async () => (await db.collection("log").find().sort({ _id: 1 }).toArray()).map(({ step }) => step);
  const record = () => db.collection("dataVersion").findOne({});
  /** What every version before the record has. */
  const makeOld = () => db.collection("tenants").insertOne({ name: "first" });
  const startChild = (...mode: string[]) => fork(childPath, [url, db.databaseName, ...mode]);
  const refusal = (opening: Promise<unknown>) =>
    opening.then(
      () => "opened",
      (error: unknown) => error,
    );

  it("is the newest for an empty database, which no step changes", async () => {
    await migrate();
    expect(await record()).to.deep.equal({ _id: "data", version: 3, readableFrom: 2 });
    expect(await stepsRun()).to.deep.equal([]);
  });

  it("brings documents of an earlier release to the space of their vectors, and leaves later ones alone", async () => {
    type Stored = { _id: string; [field: string]: unknown };
    const about = { tenantId: "ten_1", version: 2 };
    const embedding = Binary.fromFloat32Array(new Float32Array(256).fill(1));
    await db
      .collection<Stored>("chunks")
      .insertOne({ _id: "c", ...about, documentId: "old", n: 0, model: "m:8b", embedding });
    const documents = db.collection<Stored>("documents");
    const later = { _id: "new", ...about, vectorSpace: "other:512" };
    await documents.insertMany([{ _id: "old", ...about }, later, { _id: "pending", ...about, version: 0 }]);
    const step = migrations.find(({ what }) => what.includes("embedded"));
    for (const _ of ["first", "again"]) await step?.run(db);
    const spaces = (await documents.find().sort({ _id: 1 }).toArray()).map(({ vectorSpace }) => vectorSpace);
    expect(spaces).to.deep.equal(["other:512", "m:8b:256", undefined]);
  });

  it("of one without a record is 1, and each step runs once, in order", async () => {
    await makeOld();
    await migrate();
    await migrate();
    expect(await stepsRun()).to.deep.equal(["first", "second"]);
    expect(await record()).to.deep.equal({ _id: "data", version: 3, readableFrom: 2 });
  });

  it("that is newer is refused in one sentence, and nothing is changed", async () => {
    await db.collection<{ _id: string; version: number }>("dataVersion").insertOne({ _id: "data", version: 4 });
    const error = await refusal(migrate());
    expect(error).to.be.instanceOf(ConfigError);
    expect(String(error)).to.match(/knows version 4 of them, and this one knows 3 at most: start the newer/);
    expect(await stepsRun()).to.deep.equal([]);
  });

  it("that is newer by steps that leave this release what it reads is accepted, and nothing is changed", async () => {
    const newer = { _id: "data", version: 5, readableFrom: 3 };
    await db.collection<typeof newer>("dataVersion").insertOne(newer);
    const said: unknown[] = [];
    await migrate({ logger: { info: (fields: unknown) => said.push(fields) } });
    expect([await record(), await stepsRun(), said]).to.deep.equal([newer, [], [{ version: 5, known: 3 }]]);
  });

  it("opens the whole store when the next release has changed it by such a step", async () => {
    const known = migrations.length + 1;
    const newer = { _id: "data", version: known + 1, readableFrom: known };
    await db.collection<typeof newer>("dataVersion").insertOne(newer);
    const store = await openStore({ url, db: db.databaseName, timeoutMs: 10_000, logger });
    expect(await store.dataVersion()).to.equal(known + 1);
    await store.close();
  });

  it("is taken from a release that is too old as soon as the change starts, not when it ends", async () => {
    await makeOld();
    const older = { migrations: [], oldestBeside: 1 };
    let meanwhile: unknown;
    const [first, ...more] = loggedSteps();
    const run = async (its: Db) => {
      meanwhile = await refusal(migrate(older));
      await first?.run(its);
    };
    await migrate({ migrations: [{ what: "first", run }, ...more] });
    expect(String(meanwhile)).to.match(/knows version 2 of them, and this one knows 1 at most/);
  });

  it("names no release beside this one that knows more than it", () => {
    expect(oldestBeside).to.be.within(1, migrations.length + 1);
  });

  it("that is newer ends a process with code 2 and one line", async () => {
    await db.collection<{ _id: string; version: number }>("dataVersion").insertOne({ _id: "data", version: 999 });
    const path = fileURLToPath(new URL("../../workers/main.ts", import.meta.url));
    const env = {
      ...process.env,
      DATA_DIR: dataDir,
      MONGODB_URL: url,
      MONGODB_DB: db.databaseName,
      LOG_LEVEL: "silent",
    };
    const child = fork(path, { env, silent: true });
    let output = "";
    child.stderr?.on("data", (bytes: Buffer) => {
      output += bytes.toString();
    });
    const [code] = await once(child, "close");
    expect([code, output.trim().split("\n")]).to.deep.equal([
      2,
      [
        `The data in ${db.databaseName} need a Switchyard that knows version 999 of them, and this one knows ${migrations.length + 1} at most: start the newer one that changed them.`,
      ],
    ]);
  });

  it("is raised once when several processes start at the same time", async () => {
    await makeOld();
    const children = [startChild(), startChild(), startChild()];
    const codes = await Promise.all(children.map(async (child) => (await once(child, "exit"))[0]));
    expect(codes).to.deep.equal([0, 0, 0]);
    expect(await stepsRun()).to.deep.equal(["first", "second"]);
  });

  it("is raised by the next process when one is killed half-way, from the step that it was at", async () => {
    await makeOld();
    const child = startChild("hang");
    await once(child, "message");
    const late = await refusal(migrate({ waitMs: 0 }));
    expect(String(late)).to.match(/Another process has been changing the data .* from version 2 .*: start again/);
    child.kill("SIGKILL");
    await once(child, "exit");
    await migrate({ waitMs: 20_000 });
    expect(await stepsRun()).to.deep.equal(["first", "second", "second"]);
    expect(await record()).to.deep.equal({ _id: "data", version: 3, readableFrom: 2 });
  });

  it("of the product's own data is raised when the store is opened", async () => {
    await makeOld();
    const query = '{"type":"rag_query","query":"a"}';
    const condition = `{"type":"condition","expression":"true","then":[${query}],"else":[{"type":"condition","then":[${query}]}]}`;
    await db
      .collection("workflows")
      .insertMany([
        { definition: `{"name":"Plain","steps":[${query}]}` },
        { definition: `{"name":"Nested","description":"Kept.","steps":[${condition}]}` },
      ]);
    await db.collection("fileBatches").insertOne({ status: "validating" });
    type Record = { _id: string; name: string };
    const tenants = ["root", "made", "made by made", "added"].map((name) => ({ _id: name, name }));
    await db.collection<Record>("tenants").insertMany(tenants);
    const entry = (tenantId: string) => ({ tenantId, madeAs: tenantId });
    await db.collection("organizations").insertMany([
      { founderTenantId: "made", tenants: [{ tenantId: "made" }, entry("made by made")] },
      { founderTenantId: "root", tenants: [{ tenantId: "root" }, entry("made"), { tenantId: "added" }] },
    ]);
    const store = await openStore({ url, db: db.databaseName, timeoutMs: 10_000, logger });
    await store.close();
    const workflows = await db.collection("workflows").find().sort({ _id: 1 }).toArray();
    expect(workflows.map(({ stepCount, description }) => [stepCount, description])).to.deep.equal([
      [1, undefined],
      [4, "Kept."],
    ]);
    const made = await db.collection("tenants").find({ rootTenantId: "root" }).sort({ _id: 1 }).toArray();
    expect(made.map(({ name }) => name)).to.deep.equal(["made", "made by made"]);
    expect(await db.collection("tenants").countDocuments({ rootTenantId: { $exists: true } })).to.equal(2);
    expect((await db.collection("fileBatches").findOne({}))?.updatedAt).to.be.instanceOf(Date);
    expect((await record())?.version).to.equal(migrations.length + 1);
  });
});
