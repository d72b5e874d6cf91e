import { expect } from "chai";
import { ensureServices, type Services } from "../../src/embedded/ensure.ts";
import { firstIdAt, type IdKind, newId } from "../../src/lib/ids.ts";
import { connectStore, type StoreConnection } from "../../src/store/connect.ts";
import { REMOVED_AT_A_TIME } from "../../src/store/retention-store.ts";
import { removeExpired } from "../../workers/maintenance.ts";
import { makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

const DAY_MS = 86_400_000;
type Kept = { _id: string };

/** An id of a record that was made this number of days ago, the nth of them. */
function idOfAge(kind: IdKind, days: number, n = 1): string {
  const first = firstIdAt(kind, new Date(Date.now() - days * DAY_MS));
  return `${first.slice(0, -4)}${String(n).padStart(4, "0")}`;
}

describe("records that are older than the settings keep them", () => {
  let test: TestPlatform;
  let services: Services;
  let store: StoreConnection;
  let tenantId: string;

  before(async () => {
    test = await startPlatform({
      workers: false,
      env: { CALL_LOG_DAYS: "10", WORKFLOW_RUN_DAYS: "10", AGENT_RUN_DAYS: "10" },
    });
    const { DATA_DIR: dataDir = "", MONGODB_DB: db = "" } = test.env;
    services = await ensureServices({ dataDir, mongo: true, redis: false, logger: test.platform.logger });
    const url = process.env.MONGODB_URL || services.mongoUrl;
    store = await connectStore({ url: url ?? "", db, timeoutMs: 5_000 });
    tenantId = await tenantOf(test);
  });
  after(async () => {
    await store?.close();
    await services?.close();
    await test?.close();
  });

  const insert = (name: string, records: object[]) => store.db.collection(name).insertMany(records);
  const idsIn = async (name: string, ids: readonly string[]) =>
    (
      await store.db
        .collection<Kept>(name)
        .find({ _id: { $in: [...ids] } })
        .toArray()
    ).map(({ _id }) => _id);

  it("are removed, call logs in many small steps, and those that are younger stay", async () => {
    const old = Array.from({ length: REMOVED_AT_A_TIME * 2 + 1 }, (_, n) => idOfAge("log", 11, n));
    const young = idOfAge("log", 9);
    await insert(
      "completions",
      [...old, young].map((_id) => ({ _id, tenantId })),
    );
    expect(await test.platform.store.retention.removeCallLogs(new Date(Date.now() - 10 * DAY_MS))).to.equal(
      REMOVED_AT_A_TIME,
    );
    await removeExpired(test.platform);
    expect(await idsIn("completions", [...old, young])).to.deep.equal([young]);
  });

  for (const { runs, steps, kind } of [
    { runs: "workflowRuns", steps: "workflowSteps", kind: "workflowRun" },
    { runs: "agentRuns", steps: "auditSteps", kind: "run" },
  ] as const) {
    it(`are removed with what belongs to them: ${runs} that have ended`, async () => {
      const [ended, open, young] = [idOfAge(kind, 12, 1), idOfAge(kind, 12, 2), idOfAge(kind, 9, 3)];
      const end = { status: "completed" };
      await insert(runs, [
        { _id: ended, tenantId, end },
        { _id: open, tenantId },
        { _id: young, tenantId, end },
      ]);
      const stepsOf = [ended, open, young].map((runId) => ({ _id: `${runId}:0`, tenantId, runId, seq: 0 }));
      await insert(steps, stepsOf);
      const approvals = [ended, open, young].map((runId) => ({
        _id: `apr_${runId}`,
        tenantId,
        runId,
        status: "approved",
      }));
      await insert("approvals", approvals);
      await removeExpired(test.platform);
      expect(
        await idsIn(
          "approvals",
          approvals.map(({ _id }) => _id),
        ),
        "also the arguments that somebody was asked about",
      ).to.have.members([`apr_${open}`, `apr_${young}`]);
      expect(await idsIn(runs, [ended, open, young])).to.have.members([open, young]);
      expect(
        await idsIn(
          steps,
          stepsOf.map(({ _id }) => _id),
        ),
      ).to.have.members([`${open}:0`, `${young}:0`]);
    });
  }

  it("stay where the setting is 0", async () => {
    const _id = idOfAge("run", 5_000);
    await insert("agentRuns", [{ _id, tenantId, end: { status: "completed" } }]);
    const { store: ofPlatform, logger, config } = test.platform;
    const retention = { ...config.retention, agentRunDays: 0 };
    await removeExpired({ store: ofPlatform, logger, config: { ...config, retention } });
    expect(await idsIn("agentRuns", [_id])).to.deep.equal([_id]);
  });

  it("are a 404 then, as any unknown one", async () => {
    const _id = idOfAge("log", 20);
    await insert("completions", [{ _id, tenantId }]);
    await removeExpired(test.platform);
    const client = makeClient({ url: test.url, key: test.keys.member });
    expect((await client.get(`/ai/logs/${_id}`)).status).to.equal(404);
    expect((await client.get(`/ai/logs/${newId("log")}`)).status).to.equal(404);
  });
});
