import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import { MongoNetworkError } from "mongodb";
import { unavailable } from "../../src/lib/errors.ts";
import { newId } from "../../src/lib/ids.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { loseAnswer, loseAnswers } from "../support/lose-answer.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";
import { whileOthersWork } from "../support/while-others-work.ts";

/** The id of the record of a call that the test platform's key of `role` made. */
const recordIdOf = (tenantId: string, role: "member" | "owner", key: string) => {
  const owned = JSON.stringify([role, `${role}@test`, key]);
  return `${tenantId}:${createHash("sha256").update(owned).digest("hex")}`;
};

describe("Idempotency-Key", () => {
  let platform: TestPlatform;
  let member: ApiClient;
  let stranger: ApiClient;
  before(async () => {
    platform = await startPlatform();
    member = makeClient({ url: platform.url, key: platform.keys.member });
    stranger = makeClient({ url: platform.url, key: platform.keys.stranger });
  });
  after(() => platform.close());

  const document = (n: string) => ({ title: `t ${n}`, content: `Idempotent document ${n}. It has a second sentence.` });
  const ingest = (client: ApiClient, key: string, body: unknown, headers: Record<string, string> = {}) =>
    client.post("/rag/ingest", body, { headers: { "idempotency-key": key, ...headers } });
  const countDocuments = async (title: string) => {
    const { body } = await member.get("/rag/documents?limit=200");
    return (body as { title: string }[]).filter((each) => each.title === title).length;
  };

  it("a repeat gets the first answer, byte for byte, and does nothing", async () => {
    const first = await ingest(member, "same", document("a"));
    expect(first.status).to.equal(201);
    expect(first.headers.get("idempotent-replayed")).to.equal(null);
    const repeat = await ingest(member, "same", document("a"));
    expect([repeat.status, repeat.text]).to.deep.equal([first.status, first.text]);
    expect(repeat.headers.get("idempotent-replayed")).to.equal("true");
    expect(repeat.headers.get("content-type")).to.equal(first.headers.get("content-type"));
    expect(await countDocuments("t a")).to.equal(1);
  });

  it("repeats of a large answer are read one at a time for a tenant while others work", async () => {
    const { idempotency } = platform.platform.store;
    const ask = () =>
      member.post(
        "/ai/embeddings",
        { input: Array.from({ length: 400 }, (_, n) => `job ${n}`), dimensions: 512 },
        { headers: { "idempotency-key": "large" } },
      );
    const first = await ask();
    expect(first.text.length).to.be.above(256 << 10);
    const { text } = idempotency;
    let running = 0;
    let most = 0;
    idempotency.text = async (...asked) => {
      running += 1;
      most = Math.max(most, running);
      const kept = await text(...asked);
      running -= 1;
      return kept;
    };
    const repeats = await whileOthersWork(stranger, () => Promise.all(Array.from({ length: 12 }, ask)));
    idempotency.text = text;
    expect(most).to.equal(1);
    expect(new Set(repeats.map((repeat) => repeat.text))).to.deep.equal(new Set([first.text]));
  });

  it("fields in another order are the same request", async () => {
    const { title, content } = document("order");
    const first = await ingest(member, "order", { title, content });
    expect((await ingest(member, "order", { content, title })).text).to.equal(first.text);
  });

  it("the same key with another body, or on another path, is a 409", async () => {
    await ingest(member, "reused", document("b"));
    const reused = await ingest(member, "reused", document("other"));
    expect([reused.status, reused.at("error.code")]).to.deep.equal([409, "idempotency_key_reused"]);
    const elsewhere = await member.post("/rag/query", document("b"), { headers: { "idempotency-key": "reused" } });
    expect(elsewhere.status).to.be.oneOf([400, 409]);
  });

  for (const part of ["the store", "the queue's notifications"] as const) {
    it(`a call whose wait fails because ${part} cannot be read was accepted, and its repeat is the same job`, async () => {
      const { store, jobs } = platform.platform;
      const { find } = store.jobs;
      const { onChange } = jobs.notifications;
      const away = async () => {
        throw unavailable("It");
      };
      if (part === "the store") store.jobs.find = away;
      else jobs.notifications.onChange = away;
      const key = `waits for ${part}`;
      try {
        const first = await ingest(member, key, document(key), { prefer: "wait=10" });
        expect(first.status).to.equal(202);
        const repeat = await ingest(member, key, document(key), { prefer: "wait=10" });
        expect(repeat.text).to.equal(first.text);
      } finally {
        store.jobs.find = find;
        jobs.notifications.onChange = onChange;
      }
      await pollUntil(async () => (await countDocuments(`t ${key}`)) === 1, { what: "the document" });
    });
  }

  for (const isTaken of [true, false]) {
    it(`a call that was refused because the store did not answer, and ${isTaken ? "has" : "has not"} taken its job, makes one job with its repeat`, async () => {
      const { jobs } = platform.platform.store;
      const { insert } = jobs;
      const key = `lost answer ${isTaken}`;
      const made: string[] = [];
      jobs.insert = async (record) => {
        made.push(record._id);
        jobs.insert = insert;
        if (isTaken) await insert(record);
        throw new MongoNetworkError("the answer is lost");
      };
      const first = await ingest(member, key, document(key), { prefer: "respond-async" });
      expect(first.status).to.equal(503);
      const repeat = await ingest(member, key, document(key), { prefer: "respond-async" });
      expect([repeat.status, repeat.string("jobId")]).to.deep.equal([202, made[0]]);
      await pollUntil(async () => (await member.get(`/jobs/${made[0]}`)).at("status") === "completed");
      await delay(500); // longer than the first attempt takes to take its job back
      expect((await member.get(`/jobs/${made[0]}`)).at("status")).to.equal("completed");
      expect(await countDocuments(`t ${key}`)).to.equal(1);
    });
  }

  it("is not needed for a key, or an agent, that the store has taken, and whose answer was lost", async () => {
    const owner = makeClient({ url: platform.url, key: platform.keys.owner });
    const lost = [loseAnswers("insertOne", "apiKeys", 1), loseAnswers("insertOne", "agents", 1)];
    try {
      const made = await owner.post("/keys", { role: "member", subject: "lost@test" });
      expect(made.status, made.text).to.equal(201);
      const client = makeClient({ url: platform.url, key: made.string("key") });
      const agent = await client.post("/agents", { name: "Lost", model: "meta-llm", systemPrompt: "Answer." });
      expect(agent.status, agent.text).to.equal(201);
      expect((await client.get(`/agents/${agent.string("agentId")}`)).status).to.equal(200);
      expect(lost.map(({ losses }) => losses())).to.deep.equal([1, 1]);
    } finally {
      for (const { restore } of lost.reverse()) restore();
    }
  });

  it("a call makes one record with its repeat when the store has taken it and its answer was lost", async () => {
    const { store } = platform.platform;
    const about = { name: "Once", model: "meta-llm", systemPrompt: "Answer." };
    const agent = await member.post("/agents", about);
    const target = { agentId: agent.at("agentId") };
    const form = new FormData();
    form.set("purpose", "batch");
    const line = { custom_id: "1", method: "POST", url: "/v1/embeddings", body: { input: "a", model: "local-embed" } };
    form.set("file", new File([JSON.stringify(line)], "lines.jsonl"));
    const file = await member.request("POST", "/v1/files", { raw: form });
    const batch = { input_file_id: file.at("id"), endpoint: "/v1/embeddings", completion_window: "24h" };
    const schedule = { name: "Daily", cron: "0 9 * * *", target, input: "What is new?" };
    const owner = makeClient({ url: platform.url, key: platform.keys.owner }); // may make all of these
    const cases: [path: string, body: object, lose: () => void][] = [
      ["/agents", about, () => loseAnswer(store.agents, "insert")],
      ["/agents", { ...about, name: "Twice" }, () => loseAnswer(store.definitionVersions, "add")],
      ["/schedules", schedule, () => loseAnswer(store.schedules, "insert")],
      [
        "/event-sources",
        { name: "Once", kind: "github", event: "push" },
        () => loseAnswer(store.eventSources, "insert"),
      ],
      ["/v1/conversations", { items: [] }, () => loseAnswer(store.conversations, "insert")],
      ["/v1/vector_stores", { name: "Once" }, () => loseAnswer(store.collections, "insert")],
      ["/v1/batches", batch, () => loseAnswer(store.jobs, "insert")], // first: the jobs of the other one are inserted, too
      ["/v1/batches", batch, () => loseAnswer(store.files, "insertBatch")],
    ];
    for (const [at, [path, body, lose]] of cases.entries()) {
      const list = async () => {
        if (path === "/v1/conversations") return 0; // has no list
        return ((await owner.get(path)).at("data") as object[]).length;
      };
      const before = await list();
      const call = () => owner.post(path, body, { headers: { "idempotency-key": `record ${at}` } });
      lose();
      expect((await call()).status, path).to.equal(503);
      const repeat = await call();
      expect(repeat.status, repeat.text).to.be.oneOf([200, 201]);
      const third = await call();
      if (path === "/event-sources") expect(third.status, "its secret is shown once").to.equal(409);
      else expect(third.text).to.equal(repeat.text);
      if (path !== "/v1/conversations") expect(await list(), path).to.equal(before + 1);
      else expect((await owner.get(`${path}/${repeat.string("id")}`)).status).to.equal(200);
    }
  });

  it("tenants do not meet each other's keys", async () => {
    const mine = await ingest(member, "shared", document("c"));
    const theirs = await ingest(stranger, "shared", document("d"));
    expect([mine.status, theirs.status]).to.deep.equal([201, 201]);
    expect(theirs.string("documentId")).not.to.equal(mine.string("documentId"));
  });

  it("subjects and roles of a tenant do not meet each other's keys, and a new key of the same two repeats its calls", async () => {
    const tenantId = await tenantOf(platform);
    const callerAs = async (role: "member" | "admin", subject: string) => {
      const made = await platform.platform.tenancy.createKey({ tenantId, role, subject });
      return makeClient({ url: platform.url, key: made.key });
    };
    const ann = await callerAs("member", "ann");
    const ids: string[] = [];
    for (const client of [ann, await callerAs("member", "bob"), await callerAs("admin", "ann")]) {
      const own = await ingest(client, "of one of them", document(`of one of them ${ids.length}`));
      expect([own.status, own.headers.get("idempotent-replayed")]).to.deep.equal([201, null]);
      ids.push(own.string("documentId"));
    }
    expect(new Set(ids).size).to.equal(3);
    const rotated = await callerAs("member", "ann");
    const repeat = await ingest(rotated, "of one of them", document("of one of them 0"));
    expect([repeat.string("documentId"), repeat.headers.get("idempotent-replayed")]).to.deep.equal([ids[0], "true"]);
  });

  it("of many at once one runs; the others get a conflict, or its answer", async () => {
    const answers = await Promise.all(Array.from({ length: 12 }, () => ingest(member, "race", document("race"))));
    const done = answers.filter(({ status }) => status === 201);
    const refused = answers.filter(({ status }) => status === 409);
    expect(done.length + refused.length).to.equal(12);
    expect(new Set(done.map((each) => each.string("documentId"))).size).to.equal(1);
    for (const each of refused) expect(each.at("error.code")).to.equal("idempotency_in_progress");
    expect(await countDocuments("t race")).to.equal(1);
  });

  it("an invalid request does not use the key up", async () => {
    expect((await ingest(member, "fixed", { content: 7 })).status).to.equal(400);
    expect((await ingest(member, "fixed", document("fixed"))).status).to.equal(201);
  });

  it("an accepted job is accepted once", async () => {
    const prefer = { prefer: "respond-async" };
    const first = await ingest(member, "accepted", document("e"), prefer);
    const repeat = await ingest(member, "accepted", document("e"), prefer);
    expect([first.status, repeat.status]).to.deep.equal([202, 202]);
    expect(repeat.string("jobId")).to.equal(first.string("jobId"));
    expect(repeat.headers.get("location")).to.equal(first.headers.get("location"));
    expect(repeat.headers.get("preference-applied")).to.equal("respond-async");
  });

  it("the answer with a new key is not kept; a repeat is refused instead", async () => {
    const owner = makeClient({ url: platform.url, key: platform.keys.owner });
    const headers = { "idempotency-key": "new-key" };
    const made = await owner.post("/keys", { name: "once" }, { headers });
    expect(made.status).to.equal(201);
    const repeat = await owner.post("/keys", { name: "once" }, { headers });
    expect([repeat.status, repeat.at("error.code")]).to.deep.equal([409, "idempotency_key_reused"]);
    const { text } = await owner.get("/keys?limit=200");
    expect(text.split('"once"')).to.have.length(2);
  });

  it("a key is kept for a day, and is free for any request after it", async () => {
    const { idempotency } = platform.platform.store;
    const tenantId = await tenantOf(platform);
    const id = recordIdOf(tenantId, "member", "old");
    const before = Date.now();
    const first = await ingest(member, "old", document("yesterday"));
    const record = await idempotency.find(tenantId, id);
    if (!record) return expect.fail("there is no record");
    const day = 24 * 3_600_000;
    expect(record.expiresAt.getTime()).to.be.within(before + day, Date.now() + day);
    expect((await ingest(member, "old", document("today"))).status, "another request on the same day").to.equal(409);
    await idempotency.takeOver({ ...record, expiresAt: new Date(Date.now() - 1) }, record.token);
    const second = await ingest(member, "old", document("today"));
    expect(second.status).to.equal(201);
    expect(second.string("documentId")).to.not.equal(first.string("documentId"));
    expect((await ingest(member, "old", document("today"))).text, "its repeat").to.equal(second.text);
  });

  it("keys of 256 characters, or not printable, are a 400", async () => {
    for (const key of ["x".repeat(256), "a\u00e9"]) {
      const { status, at } = await ingest(member, key, document("f"));
      expect([status, at("error.param")]).to.deep.equal([400, "Idempotency-Key"]);
    }
    expect((await ingest(member, "x".repeat(255), document("g"))).status).to.equal(201);
  });
});

describe("Idempotency-Key after a crash", () => {
  let platform: TestPlatform;
  before(async () => {
    platform = await startPlatform({ workers: false });
  });
  after(() => platform.close());

  it("a call whose process died is answered with the accepted job, or may run again", async () => {
    const { idempotency } = platform.platform.store;
    const record = (id: string, token: string) => ({
      _id: id,
      tenantId: "ten_x",
      fingerprint: "f",
      token,
      leaseUntil: new Date(Date.now() - 1),
      isDone: false,
      jobId: newId("job"),
      expiresAt: new Date(Date.now() + 60_000),
    });
    expect(await idempotency.insert(record("a", "dead"))).to.equal(true);
    expect(await idempotency.insert(record("a", "second"))).to.equal(false);
    const takers = await Promise.all(["x", "y", "z"].map((token) => idempotency.takeOver(record("a", token), "dead")));
    expect(takers.filter(Boolean), "one of three takes it over").to.have.length(1);
    await idempotency.keep(record("a", "dead"), { status: 201, headers: {}, body: "{}", ignored: [] }, true);
    expect((await idempotency.find("ten_x", "a"))?.isDone, "the dead process writes nothing more").to.equal(false);
    expect(await idempotency.find("ten_y", "a"), "another tenant").to.equal(null);
  });

  it("a call that died between accepting its job and answering makes no second job", async () => {
    const client = makeClient({ url: platform.url, key: platform.keys.owner });
    const { idempotency, jobs } = platform.platform.store;
    const call = (key: string) =>
      client.post(
        "/rag/ingest",
        { content: `Document of ${key}.` },
        {
          headers: { "idempotency-key": key, prefer: "respond-async" },
        },
      );
    const tenantId = await tenantOf(platform);
    /** Puts the call's record back to where it was before there was an answer, with a lease that has run out. */
    const undoAnswer = async (key: string) => {
      const id = recordIdOf(tenantId, "owner", key);
      const record = await idempotency.find(tenantId, id);
      if (!record) throw new Error("there is no record");
      const { reply: _reply, ...unanswered } = record;
      const leaseUntil = new Date(Date.now() - 1);
      expect(await idempotency.takeOver({ ...unanswered, isDone: false, leaseUntil }, record.token)).to.equal(true);
    };
    const first = await call("cut");
    await undoAnswer("cut");
    const repeat = await call("cut");
    expect([repeat.status, repeat.string("jobId")]).to.deep.equal([202, first.string("jobId")]);
    expect(repeat.string("documentId")).to.equal(first.string("documentId"));
    expect(await jobs.countOpen(tenantId, 1_000)).to.equal(1);

    // Its process may also have died after its job was refused, whose record no tenant finds.
    const refused = await call("refused");
    await undoAnswer("refused");
    const record = await jobs.find(tenantId, refused.string("jobId"));
    if (!record) throw new Error("there is no job");
    expect(await jobs.reject({ ...record, status: "failed", tenantId: "" }, record.status)).to.equal(true);
    const again = await call("refused");
    expect([again.status, again.string("jobId")]).to.deep.equal([202, refused.string("jobId")]);
    expect((await client.get(again.string("statusUrl"))).string("status")).to.equal("queued");
    const late = { ...record, createdAt: new Date(0), status: "failed", tenantId: "" } as const;
    expect(await jobs.reject(late, "queued"), "the first attempt's refusal, once more").to.equal(false);
    expect((await client.get(again.string("statusUrl"))).status).to.equal(200);
  });
});
