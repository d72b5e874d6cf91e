import { expect } from "chai";
import { hashEntry, hashRun, openAuditLog, verifyAuditLog } from "../../src/agents/audit.ts";
import { unavailable } from "../../src/lib/errors.ts";
import type { AgentRunRecord } from "../../src/store/agent-run-store.ts";
import type { AuditContent, AuditEntry, AuditStore } from "../../src/store/audit-store.ts";

const createdAt = new Date("2026-11-20T12:00:00.123Z");
const run: AgentRunRecord = {
  _id: "run_1",
  tenantId: "ten_1",
  agentId: "agt_1",
  agentVersion: 3,
  definition: { name: "Clerk", model: "m", systemPrompt: "You order.", tools: [], maxIterations: 5 },
  jobId: "job_1",
  caller: { keyId: "key_1", subject: "ann", role: "member" },
  input: "Order one.",
  limits: { timeoutMs: 1_000 },
  depth: 1,
  createdAt,
  updatedAt: createdAt,
};
const said = (reason: string): AuditContent => ({ kind: "end", status: "stopped", reason, output: "" });

/** A store whose entries the tests change, as someone does who can write the database. */
function makeLogStore(entries: AuditEntry[] = []) {
  const store: AuditStore = {
    append: async (entry) => void entries.push(entry),
    contents: async () => [...entries],
    list: async () => [...entries],
  };
  return { store, entries };
}

/** The entries of a run that said `a`, `b` and `c`, and the run as it ended with them. */
async function makeLog() {
  const { store, entries } = makeLogStore();
  const log = await openAuditLog(store, run);
  for (const reason of ["a", "b", "c"]) await log.append(said(reason));
  const end = { status: "completed" as const, output: "", steps: 3, tokensUsed: 0, costUsd: 0, finishedAt: createdAt };
  return { entries, ended: { ...run, end: { ...end, ...log.head() } } };
}

describe("an agent's audit log", () => {
  it("has the hashes of its definition, which other programs can compute, and every later version must", () => {
    // Of Python's hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).
    const ofRun = "8f74c3acdd71fa8cc1c05cdbde476026cb372d016d630479b0218ac48f07d9bb";
    const ofNested = "5f623649365530727f1b0f6fe30d2687411cc804272365362a939b6d34367027";
    const entry = { tenantId: "ten_1", runId: "run_1", seq: 0, at: createdAt.toISOString(), previous: ofRun };
    expect(hashRun(run)).to.equal(ofRun);
    expect(hashRun({ ...run, sessionId: "s", context: '{"a":1}', parentRunId: "run_0" })).to.equal(ofNested);
    expect(hashEntry({ ...entry, content: said("a") })).to.equal(
      "e173f8a3e7fbec4e8893eafb13d526f5eacd7a4ffaeafead5feea6cce6695b20",
    );
  });

  it("is continued by the next worker where the last one left it", async () => {
    const { store, entries } = makeLogStore();
    const first = await openAuditLog(store, run);
    expect(first.head()).to.deep.equal({ entries: 0, head: hashRun(run) });
    const before = new Date().toISOString();
    await Promise.all([first.append(said("a")), first.append(said("b"))]);
    const second = await openAuditLog(store, run);
    expect(second.recorded).to.deep.equal([said("a"), said("b")]);
    expect(second.head()).to.deep.equal(first.head());
    await second.append(said("c"));
    expect(entries.map(({ _id, tenantId, runId, content }) => [_id, tenantId, runId, content])).to.deep.equal(
      ["a", "b", "c"].map((reason, seq) => [`run_1:${seq}`, "ten_1", "run_1", said(reason)]),
    );
    for (const { at } of entries) expect(at >= before && at <= new Date().toISOString()).to.equal(true);
    expect(verifyAuditLog(run, entries)).to.deep.equal({ verified: true, ...second.head() });
    expect(second.head()).to.deep.equal({ entries: 3, head: entries.at(-1)?.hash });
  });

  it("accepts no entry after one that was not written", async () => {
    const { store, entries } = makeLogStore();
    const log = await openAuditLog({ ...store, append: () => Promise.reject(unavailable("The store")) }, run);
    const both = await Promise.allSettled([log.append(said("a")), log.append(said("b"))]);
    expect(both.map(({ status }) => status)).to.deep.equal(["rejected", "rejected"]);
    expect(log.head()).to.deep.equal({ entries: 0, head: hashRun(run) });
    expect(entries).to.deep.equal([]);
  });

  it("reports the first place where it was tampered with, and how", async () => {
    const { entries, ended } = await makeLog();
    const [a, b, c] = entries;
    if (!a || !b || !c) return expect.fail("there are three");
    const rehashed = (entry: AuditEntry) => ({ ...entry, hash: hashEntry(entry) });
    const forged = { ...b, content: said("forged") };
    const lone: AgentRunRecord = { ...ended, end: { ...ended.end, entries: 0, head: "another" } };
    const missing = "The entry of this place is missing.";
    const more = "There is more than one entry of this place.";
    const ofRun = "The run's own record was changed, or this entry was.";
    const ofLast = "The last entry is not the one the run ended with.";
    const ways: [way: string, AgentRunRecord, AuditEntry[], number, string][] = [
      ["the first removed", ended, [b, c], 0, missing],
      ["one removed", ended, [a, c], 1, missing],
      ["the last removed", ended, [a, b], 2, missing],
      ["one doubled", ended, [a, b, b, c], 2, more],
      ["one changed", ended, [a, forged, c], 1, "The entry was changed."],
      ["one changed, with its hash", ended, [a, rehashed(forged), c], 2, "The entry before was replaced."],
      ["the last changed, with its hash", ended, [a, b, rehashed({ ...c, content: said("forged") })], 2, ofLast],
      [
        "one put in after the end",
        ended,
        [...entries, rehashed({ ...c, seq: 3, previous: c.hash })],
        3,
        "The entry was put in after the run's end.",
      ],
      ["the run changed", { ...ended, input: "Order a hundred." }, entries, 0, ofRun],
      ["the run changed, without entries", lone, [], 0, ofLast],
    ];
    for (const [way, of, tampered, seq, problem] of ways) {
      const { head: _head, ...found } = verifyAuditLog(of, tampered);
      expect(found, way).to.deep.equal({ verified: false, entries: tampered.length, breach: { seq, problem } });
    }
    expect(verifyAuditLog(ended, [a, forged, c]).head, "how far it holds").to.equal(a.hash);
    expect(verifyAuditLog(ended, entries)).to.deep.equal({ verified: true, entries: 3, head: c.hash });
    expect(verifyAuditLog(run, [a, b]), "while it runs").to.deep.equal({ verified: true, entries: 2, head: b.hash });
  });
});
