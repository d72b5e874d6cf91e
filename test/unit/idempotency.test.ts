import { mock } from "node:test";
import { expect } from "chai";
import { toErrorBody } from "../../api/middleware/errors.ts";
import { respondIdempotently } from "../../api/middleware/idempotency.ts";
import type { HandlerInput, Reply } from "../../api/route.ts";
import { AppError, notFound, toErrorView, unavailable } from "../../src/lib/errors.ts";
import type { Platform } from "../../src/platform.ts";
import type { Claim, IdempotencyRecord, IdempotencyStore } from "../../src/store/idempotency-store.ts";
import { pollUntil } from "../support/poll-until.ts";

const day = 24 * 3_600_000;
const body = { title: "t" };
const reply = { status: 201, headers: { location: "/1" }, body: { id: 1 } };
const replayed = { "idempotent-replayed": "true" };
const json = { "content-type": "application/json; charset=utf-8" };

/** The records of one store in memory, which a test can look into and change; the real store has tests of its own. */
function makeStore() {
  const records = new Map<string, IdempotencyRecord>();
  const running = ({ _id, token }: Claim) => {
    const record = records.get(_id);
    return record?.token === token && record.isDone === false ? record : undefined;
  };
  const store: IdempotencyStore = {
    async insert(record) {
      if (records.has(record._id)) return false;
      records.set(record._id, { ...record });
      return true;
    },
    find: async (_tenantId, id) => records.get(id) ?? null,
    text: async () => undefined, // this one keeps all texts with their records
    async takeOver(record, token) {
      if (records.get(record._id)?.token !== token) return false;
      records.set(record._id, { ...record });
      return true;
    },
    renew: async (claim, leaseUntil) => void Object.assign(running(claim) ?? {}, { leaseUntil }),
    keep: async (claim, kept, isDone) =>
      void Object.assign(running(claim) ?? {}, { isDone, ...(kept ? { reply: kept } : {}) }),
    letGo: async (claim) => void Object.assign(running(claim) ?? {}, { leaseUntil: new Date() }),
    release: async (claim) => void (running(claim) && records.delete(claim._id)),
  };
  return { records, store };
}

/** A server whose one route counts its runs, and notes what it was given. */
function makeServer() {
  const { records, store } = makeStore();
  const runs: HandlerInput[] = [];
  let handle = async (_input: HandlerInput): Promise<Reply> => reply;
  const run = (input: HandlerInput) => {
    runs.push(input);
    return handle(input);
  };
  const ask = (key: string, input: Partial<HandlerInput> = {}, isSecret = false) =>
    respondIdempotently(
      { store: { idempotency: store }, quotas: { check: async () => () => undefined } },
      {
        params: {},
        query: {},
        body,
        caller: { tenantId: "ten_1", keyId: "key_1", subject: "ann", role: "member", collections: undefined },
        signal: new AbortController().signal,
        platform: {} as Platform, // no handler of these tests uses it
        requestId: "req_1",
        path: "/things",
        header: () => undefined,
        ignore: () => undefined,
        reserve: () => undefined,
        inTurn: (read) => read(),
        checkpoint: async () => undefined,
        ...input,
      },
      { key, isSecret, handle: run },
    );
  const only = () => {
    const [record, ...others] = records.values();
    if (!record || others.length > 0) return expect.fail(`there are ${records.size}`);
    return record;
  };
  return { records, store, runs, ask, only, on: (next: typeof handle) => (handle = next) };
}

const codeOf = (call: Promise<unknown>) =>
  call.then(
    () => "none",
    (error: unknown) => toErrorView(error).code,
  );

describe("a call with an idempotency key", () => {
  const MiB = 1 << 20;
  const list = (bytes: number) => ["é".repeat(bytes / 2 - 2)]; // in JSON with its brackets and quotes
  const failing = (error: unknown) => async () => {
    throw error;
  };
  const ofError = (error: AppError, status: number) => ({
    status,
    headers: { ...replayed, ...json },
    body: JSON.stringify(toErrorBody(error, "req_1")),
  });
  const [gone, taken, unreadable] = [
    notFound("It"),
    new AppError("wrong_state", "It has ended."),
    new AppError("source_unreadable", "It is empty."),
  ];
  const large = { status: 200, headers: replayed };
  const stream: Reply = { status: 200, events: (async function* () {})() };
  const ends: [how: string, () => Promise<Reply>, repeat: object | "runs again"][] = [
    [
      "with a body",
      async () => reply,
      { ...reply, headers: { ...reply.headers, ...replayed, ...json }, body: '{"id":1}' },
    ],
    ["without a body", async () => ({ status: 204 }), { status: 204, headers: replayed }],
    ["404", failing(gone), ofError(gone, 404)],
    ["409", failing(taken), ofError(taken, 409)],
    ["422", failing(unreadable), ofError(unreadable, 422)],
    ["503", failing(unavailable("It")), "runs again"],
    ["by an unknown error", failing(new TypeError("x")), "runs again"],
    ["as a stream", async () => stream, "runs again"],
    [
      "with 8 MiB",
      async () => ({ status: 200, body: list(8 * MiB) }),
      { ...large, headers: { ...replayed, ...json }, body: JSON.stringify(list(8 * MiB)) },
    ],
    ["with more than 8 MiB", async () => ({ status: 200, body: list(8 * MiB + 2) }), "runs again"],
  ];
  for (const [how, handle, expected] of ends) {
    it(`that ended ${how} is ${expected === "runs again" ? "free to run again" : "repeated as it was"}`, async () => {
      const { runs, ask, on } = makeServer();
      on(handle);
      const seen = async () => ask("k", { requestId: `req_${runs.length + 1}` }).catch((error: unknown) => error);
      const alone = await handle().catch((error: unknown) => error);
      const first = await seen();
      if (alone instanceof AppError) expect(first).to.equal(alone);
      else if (alone instanceof Error) expect(toErrorView(first).code).to.equal("internal");
      else expect(first).to.deep.equal(alone);
      expect(runs[0]).to.include({ body, requestId: "req_1" });
      const second = await seen();
      expect(runs).to.have.length(expected === "runs again" ? 2 : 1);
      if (expected !== "runs again") expect(second).to.deep.equal(expected);
    });
  }

  it("that holds a secret is not repeated, and keeps nothing of it", async () => {
    const { runs, ask, only } = makeServer();
    expect(await ask("k", {}, true)).to.equal(reply);
    expect(await codeOf(ask("k", {}, true))).to.equal("idempotency_key_reused");
    expect(runs).to.have.length(1);
    expect([only().isDone, only().reply]).to.deep.equal([true, undefined]);
  });

  it("is refused for a key that is empty, odd or too long, before anything is kept", async () => {
    const { records, ask } = makeServer();
    for (const key of ["", " a", "é", "x".repeat(256)]) {
      const error = await ask(key).catch(toErrorView);
      expect(error, key).to.include({ code: "invalid_request", param: "Idempotency-Key" });
    }
    expect(records.size).to.equal(0);
    expect(await ask("x".repeat(255))).to.equal(reply);
  });

  it("is the same call for the same path, query and body alone", async () => {
    const file = Buffer.from("a file");
    const nested = { a: [1, "x"], b: null, c: undefined, file };
    const first: Partial<HandlerInput> = { path: "/p", query: { n: 1 }, body: nested };
    const { ask, only } = makeServer();
    await ask("key 1", first);
    const { _id, tenantId, fingerprint } = only();
    // Two releases beside each other must agree; of Python's hashlib.sha256 and hmac.
    expect([_id, tenantId, fingerprint]).to.deep.equal([
      "ten_1:60f1f5ad7dfbcc45d281ee4897442b47072d523fd8b134ad5b8a9e37fe926ab5",
      "ten_1",
      "1acb322a46efd635c9dbfaa311f40981286b1d22be252cf42125a25b669fd299",
    ]);
    const { c: _c, ...without } = nested;
    const others: [what: string, Partial<HandlerInput>, isSame: boolean][] = [
      ["another order", { body: { file: Buffer.from("a file"), c: undefined, b: null, a: [1, "x"] } }, true],
      ["another path", { path: "/q" }, false],
      ["another query", { query: { n: 2 } }, false],
      ["another order of a list", { body: { ...nested, a: ["x", 1] } }, false],
      ["another type", { body: { ...nested, a: ["1", "x"] } }, false],
      ["a field less", { body: without }, false],
      ["another file", { body: { ...nested, file: Buffer.from("b file") } }, false],
      ["no body", { body: undefined }, false],
    ];
    for (const [what, changes, isSame] of others) {
      const code = await codeOf(ask("key 1", { ...first, ...changes }));
      expect(code, what).to.equal(isSame ? "none" : "idempotency_key_reused");
    }
  });

  it("belongs to the tenant, the subject and the role of its caller, whichever API key they use", async () => {
    const { ask, runs } = makeServer();
    const caller = {
      tenantId: "ten_1",
      keyId: "key_1",
      subject: "ann",
      role: "owner",
      collections: undefined,
    } as const;
    await ask("k", { caller });
    for (const changes of [{ tenantId: "ten_2" }, { subject: "bob" }, { role: "member" }] as const) {
      const before = runs.length;
      expect(await ask("k", { caller: { ...caller, ...changes } }), JSON.stringify(changes)).to.equal(reply);
      expect(runs).to.have.length(before + 1);
    }
    expect(await ask("k", { caller: { ...caller, keyId: "key_2" } })).to.have.property("body", '{"id":1}');
    expect(runs).to.have.length(4);
  });

  for (const [how, end] of [
    ["succeeded", () => reply],
    [
      "failed",
      () => {
        throw gone;
      },
    ],
  ] as const) {
    it(`that ${how} names at each repeat what its handler ignored`, async () => {
      const { ask, on, runs } = makeServer();
      on(async ({ ignore }) => {
        ignore("temperature;used=1");
        ignore("top_p;used=1");
        return end();
      });
      for (let attempt = 0; attempt < 3; attempt += 1) {
        const named: string[] = [];
        await ask("k", { ignore: (name) => void named.push(name) }).catch(() => undefined);
        expect(named).to.deep.equal(["temperature;used=1", "top_p;used=1"]);
      }
      expect(runs).to.have.length(1);
    });
  }

  it("is held by a lease that is renewed while it runs, and no longer", async () => {
    mock.timers.enable({ apis: ["setInterval"] });
    try {
      const { store, runs, ask, on, only } = makeServer();
      const { promise, resolve } = Promise.withResolvers<Reply>();
      on(() => promise);
      const { renew } = store;
      let renewals = 0;
      store.renew = async (...args) => {
        renewals += 1;
        if (renewals === 1) throw unavailable("The store");
        await renew(...args);
      };
      const before = Date.now();
      const first = ask("k");
      await pollUntil(() => runs.length > 0, { everyMs: 1, what: "the call" });
      on(async () => reply);
      expect(only().leaseUntil.getTime()).to.be.within(before + 15_000, Date.now() + 15_000);
      expect(only().expiresAt.getTime()).to.be.within(before + day, Date.now() + day);
      const refused = await ask("k").catch((error: unknown) => error);
      expect(refused).to.include({ code: "idempotency_in_progress", retryable: true });
      only().leaseUntil = new Date(0);
      mock.timers.tick(4_999);
      expect(renewals).to.equal(0);
      mock.timers.tick(5_001);
      expect(renewals).to.equal(2);
      expect(only().leaseUntil.getTime()).to.be.within(before + 15_000, Date.now() + 15_000);
      resolve(reply);
      await first;
      mock.timers.tick(60_000);
      expect(renewals, "after its end").to.equal(2);
    } finally {
      mock.timers.reset();
    }
  });

  it("is refused after five attempts at a key that others take and free again and again", async () => {
    const { store, ask } = makeServer();
    let attempts = 0;
    store.insert = async () => {
      attempts += 1;
      if (attempts > 10) throw new Error("it tries without end");
      return false;
    };
    expect(await codeOf(ask("k"))).to.equal("idempotency_in_progress");
    expect(attempts).to.equal(5);
  });

  /** What is left of a call whose process dies: its record, whose lease has run out. */
  const crash = async ({ ask, on, only, runs }: ReturnType<typeof makeServer>, accepted?: typeof reply) => {
    on(async ({ checkpoint, ignore }) => {
      ignore("temperature;used=1");
      if (accepted) await checkpoint(accepted);
      return new Promise(() => undefined);
    });
    void ask("k");
    await pollUntil(() => runs.length > 0 && (!accepted || only().reply), { everyMs: 1, what: "the call" });
    only().leaseUntil = new Date(Date.now() - 1);
    on(async () => reply);
    return only();
  };

  it("whose process died before it was accepted runs again, once, with the same id for its job", async () => {
    const server = makeServer();
    const { ask, runs, only, store } = server;
    const { token, jobId } = await crash(server);
    expect(jobId).to.match(/^job_/);
    const { takeOver } = store;
    store.takeOver = async () => false; // another process has just done so
    expect(await codeOf(ask("k"))).to.equal("idempotency_in_progress");
    store.takeOver = takeOver;
    expect(await ask("k")).to.equal(reply);
    expect(runs.map(({ reservation }) => reservation)).to.deep.equal([
      { jobId, mayBeThere: false, state: "unused" },
      { jobId, mayBeThere: true, state: "unused" },
    ]);
    expect(only().token).to.not.equal(token);
    expect(await ask("k")).to.have.property("body", '{"id":1}');
    expect(runs).to.have.length(2);
  });

  it("whose process died after it was accepted is answered with that, and with what was ignored until then", async () => {
    const server = makeServer();
    await crash(server, { ...reply, status: 202 });
    const named: string[] = [];
    const ignore = (name: string) => void named.push(name);
    expect(await server.ask("k", { ignore })).to.include({ status: 202, body: '{"id":1}' });
    expect(named).to.deep.equal(["temperature;used=1"]);
    expect(server.runs).to.have.length(1);
  });

  it("that was accepted and then ended is answered with its end", async () => {
    const { ask, on } = makeServer();
    on(async ({ checkpoint }) => {
      await checkpoint({ ...reply, status: 202 });
      return reply;
    });
    await ask("k");
    expect(await ask("k")).to.include({ status: 201 });
  });

  it("is forgotten after a day: its key is free for any call then", async () => {
    const { ask, runs, only, records, store } = makeServer();
    await ask("k");
    only().expiresAt = new Date(Date.now() - 1);
    const { takeOver } = store;
    store.takeOver = async (record) => {
      records.set(record._id, { ...record, token: "of another process, which was first" });
      return false;
    };
    expect(await codeOf(ask("k", { path: "/others" }))).to.equal("idempotency_in_progress");
    store.takeOver = takeOver;
    only().expiresAt = new Date(Date.now() - 1);
    await ask("k", { path: "/others" });
    expect(await ask("k", { path: "/others" })).to.have.nested.property("headers.idempotent-replayed");
    const [first, second, ...more] = runs.map(({ reservation }) => reservation);
    expect(more).to.deep.equal([]);
    expect(second?.mayBeThere).to.equal(false);
    expect(second?.jobId).to.not.equal(first?.jobId);
  });
});
