import { expect } from "chai";
import { sweepWorks } from "../../src/jobs/work.ts";
import { loseAnswer } from "../support/lose-answer.ts";
import { pollUntil } from "../support/poll-until.ts";
import { tenantOf } from "../support/tenant-of.ts";
import {
  chatModel,
  condition,
  openWorkflowHarness,
  set,
  stepsOf,
  type WorkflowHarness,
} from "../support/workflow-harness.ts";

describe("a workflow", function () {
  this.timeout(60_000);
  let harness: WorkflowHarness;
  before(async () => {
    harness = await openWorkflowHarness();
    harness.model.play(({ input }) => ({ text: `Answer to ${input}` }));
    harness.site.on("/effect", (_, response) => void response.writeHead(204).end());
    harness.site.on("/fails", (_, response) => void response.writeHead(500).end());
  });
  after(() => harness.close());

  const makeAgent = async (more: object = {}) => {
    const made = await harness.member.post("/agents", {
      ...{ name: "Helper", model: chatModel, systemPrompt: "Help.", tools: [] },
      ...more,
    });
    return made.string("agentId");
  };

  it("gives names to values, of their types", async () => {
    const run = await harness.run([set("a", { n: "{{ input.n + 1 }}", text: "n is {{ input.n }}" })], { n: 1 });
    expect(run.at("output")).to.deep.equal({ n: 2, text: "n is 1" });
  });

  it("waits for a time, and goes on", async () => {
    const run = await harness.run([{ type: "wait", ms: 300 }, set("b", { ok: true })]);
    expect(run.at("status"), run.text).to.equal("completed");
    expect(run.at("output")).to.deep.equal({ ok: true });
  });

  it("walks through branches at the same time, each with its own previous", async () => {
    const branches = {
      one: [set("x", { v: 1 }), set("x2", { v: "{{ previous.v + 1 }}" })],
      two: [{ type: "wait", ms: 200 }, set("y", { v: 10 })],
    };
    const run = await harness.run([
      { type: "parallel", id: "both", branches },
      set("sum", { v: "{{ steps.x2.output.v + steps.y.output.v }}" }),
    ]);
    expect(run.at("output"), run.text).to.deep.equal({ v: 12 });
    expect(stepsOf(run).find(({ id }) => id === "both")?.output).to.deep.equal({ one: { v: 2 }, two: { v: 10 } });
  });

  it("runs an agent, a pattern and another workflow as jobs of their own", async () => {
    const agentId = await makeAgent();
    const inner = await harness.create([set("double", { n: "{{ input * 2 }}" })]);
    const run = await harness.run(
      [
        { type: "agent", id: "ask", agentId, input: "Say {{ input }}" },
        { type: "workflow", id: "sub", workflowId: inner, input: "{{ input }}" },
        {
          type: "composite",
          id: "many",
          pattern: "critique",
          profile: "coding",
          input: "Check {{ steps.ask.output }}",
        },
      ],
      21,
    );
    expect(run.at("status"), run.text).to.equal("completed");
    const [ask, sub, many] = stepsOf(run) as unknown as { output: unknown; child: { jobId: string; kind: string } }[];
    expect(ask?.output).to.equal("Answer to Say 21");
    expect(sub?.output).to.deep.equal({ n: 42 });
    expect(many?.output).to.be.a("string");
    const jobs = await harness.member.get(`/jobs?parentJobId=${run.string("jobId")}`);
    expect((jobs.at("data") as { jobId: string }[]).map(({ jobId }) => jobId)).to.have.members(
      [ask, sub, many].map((step) => step?.child.jobId),
    );
  });

  it("names the parent of each run within, for followers of all jobs and of its own", async () => {
    const agentId = await makeAgent();
    const inner = await harness.create([{ type: "agent", id: "ask", agentId, input: "Say {{ input }}" }]);
    const outer = await harness.create([
      {
        type: "for_each",
        id: "loop",
        items: "[1, 2]",
        do: [{ type: "workflow", id: "sub", workflowId: inner, input: "{{ item }}" }],
      },
      { type: "agent", id: "last", agentId, input: "End" },
    ]);
    const leave = new AbortController();
    const all = await harness.member.events("GET", "/jobs/events", { signal: leave.signal });
    const started = await harness.member.post(`/workflows/${outer}/execute`, {});
    const jobId = started.string("jobId");
    type Told = { jobId: string; parentJobId?: string; parentStep?: { id: string; path: string }; status: string };
    const told = new Map<string, Told>();
    for await (const { data } of all.events) {
      const job = data as Told; // the client has checked its schema
      told.set(job.jobId, job);
      if (job.jobId === jobId && job.status === "completed") break;
    }
    const placeOf = (id: string): string => {
      const { parentJobId, parentStep } = told.get(id) ?? {};
      return parentJobId === undefined ? "run" : `${placeOf(parentJobId)}/${parentStep?.id} ${parentStep?.path}`;
    };
    leave.abort();
    const tree = [...told.keys()].map(placeOf).sort();
    expect(tree).to.deep.equal([
      "run",
      "run/last 1",
      "run/sub 0/do[0]/0",
      "run/sub 0/do[0]/0/ask 0",
      "run/sub 0/do[1]/0",
      "run/sub 0/do[1]/0/ask 0",
    ]);
    const own = await harness.member.events("GET", `/jobs/${jobId}/events`);
    const begun: string[] = [];
    let last: unknown;
    for await (const { event, data } of own.events) {
      const {
        event: what,
        path,
        child,
      } = Object(data) as { event?: string; path?: string; child?: { kind: string; jobId: string; runId: string } };
      if (event === "step" && what === "started") begun.push(`${path} ${child?.kind} ${placeOf(child?.jobId ?? "")}`);
      if (event === "step" && what === "step" && path === "1") last = child?.runId;
    }
    expect(begun.sort()).to.deep.equal([
      "0/do[0]/0 workflow run/sub 0/do[0]/0",
      "0/do[1]/0 workflow run/sub 0/do[1]/0",
      "1 agent run/last 1",
    ]);
    expect(last, "the run of the step that has ended").to.match(/^run_/);
  });

  it("repeats steps for each item, in order, and says how far it is", async () => {
    const items = Array.from({ length: 100 }, (_, n) => n);
    const run = await harness.run(
      [
        {
          ...{ type: "for_each", id: "loop", items: "input", concurrency: 7 },
          do: [
            set("twice", { n: "{{ item * 2 }}" }),
            condition(
              "item_index < 50",
              [set("low", { n: "{{ previous.n }}" })],
              [{ type: "wait", ms: 1 }, set("high", { n: "{{ steps.twice.output.n }}" })],
            ),
          ],
        },
      ],
      items,
    );
    expect(run.at("status"), run.text.slice(0, 500)).to.equal("completed");
    expect(run.at("output")).to.deep.equal(items.map((n) => ({ n: n * 2 })));
    expect(stepsOf(run)[0]).to.have.deep.property("items", { done: 100, total: 100, failed: 0 });
  });

  it("goes on after an item that failed, or stops with it", async () => {
    const step = (onError: string) => ({
      ...{ type: "for_each", id: "loop", items: "input", onError, concurrency: 1 },
      do: [set("part", { n: "{{ 10 / item }}" })],
    });
    const goneOn = await harness.run([step("continue")], [1, 0, 2]);
    expect(goneOn.at("status"), goneOn.text).to.equal("completed");
    const output = goneOn.at("output") as object[];
    expect([output[0], output[2]]).to.deep.equal([{ n: 10 }, { n: 5 }]);
    expect(output[1]).to.have.nested.property("error.code", "invalid_request");
    const stopped = await harness.run([step("stop")], [1, 0, 2]);
    expect(stopped.at("status")).to.equal("failed");
    expect(stopped.at("error.details.path")).to.equal("0/do[1]/0");
    expect(stepsOf(stopped)[0]).to.have.property("status", "failed");
  });

  it("goes on after an error as the step says, and reads it", async () => {
    const url = `${harness.site.origin}/fails`;
    const call = (onError: object) => ({
      type: "webhook",
      id: "call",
      url,
      method: "POST",
      retry: { attempts: 1, backoffMs: 0 },
      onError,
    });
    const jumped = await harness.run([
      call({ goto: "mend" }),
      set("skipped", { no: 1 }),
      set("mend", { code: "{{ steps.call.error.code }}" }),
    ]);
    expect(jumped.at("output"), jumped.text).to.deep.equal({ code: "webhook_failed" });
    expect(stepsOf(jumped).map(({ id }) => id)).to.deep.equal(["call", "mend"]);
    const defaulted = await harness.run([call({ default: { n: 3 } }), set("used", { n: "{{ previous.n }}" })]);
    expect(defaulted.at("output"), defaulted.text).to.deep.equal({ n: 3 });
  });

  it("fails a step whose time is over", async () => {
    const run = await harness.run([
      {
        type: "parallel",
        id: "slow",
        timeoutMs: 300,
        branches: { a: [{ type: "wait", ms: 60_000 }] },
        onError: { default: "late" },
      },
      set("after", { v: "{{ previous }}" }),
    ]);
    expect(run.at("output"), run.text).to.deep.equal({ v: "late" });
  });

  it("is suspended by the approval of a workflow that it runs, and ends as that does", async () => {
    const inner = await harness.create([
      { type: "human_approval", id: "ok", assigneeRole: "admin" },
      set("after", { done: true }),
    ]);
    const outer = await harness.create([
      { type: "workflow", id: "sub", workflowId: inner },
      set("last", { v: "{{ previous.done }}" }),
    ]);
    for (const [decision, status] of [
      ["approved", "completed"],
      ["rejected", "rejected"],
    ] as const) {
      const runId = await harness.start(outer);
      const approval = await pollUntil(
        async () =>
          (await harness.admin.get("/workflows/approvals")).at("data[0]") as { approvalId: string } | undefined,
      );
      expect((await harness.member.get(`/workflows/${outer}/runs/${runId}`)).at("status")).to.equal("running");
      await harness.admin.post(`/workflows/approvals/${approval.approvalId}/decide`, { decision });
      const run = await harness.reach(outer, runId, "completed", "failed", "rejected");
      expect(run.at("status"), run.text).to.equal(status);
    }
  });

  it("takes what it has started with it when it is cancelled", async () => {
    const inner = await harness.create([{ type: "human_approval", id: "ok", assigneeRole: "admin" }]);
    const middle = await harness.create([
      { type: "for_each", items: "[1, 2, 3]", do: [{ type: "workflow", workflowId: inner }] },
    ]);
    const outer = await harness.create([
      {
        type: "parallel",
        branches: { a: [{ type: "workflow", workflowId: middle }], b: [{ type: "wait", event: "never" }] },
      },
    ]);
    const runId = await harness.start(outer);
    const open = async () => (await harness.admin.get("/workflows/approvals")).at("data") as object[];
    await pollUntil(async () => (await open()).length === 3);
    const at = performance.now();
    await harness.member.post(`/workflows/${outer}/runs/${runId}/cancel`, {});
    await pollUntil(async () => (await open()).length === 0);
    expect(performance.now() - at).to.be.below(2_000);
    const jobs = await harness.member.get("/jobs?status=awaiting");
    expect(jobs.at("data"), jobs.text).to.deep.equal([]);
  });

  it("asks for no decision any more once it has ended, also when the store's answer to that was lost", async () => {
    const { store, workflows } = harness.test.platform;
    const asked = async () => (await harness.admin.get("/workflows/approvals")).at("data") as { approvalId: string }[];
    const ask = (id: string) => ({ type: "human_approval", id, assigneeRole: "admin" });
    const begin = async () => {
      const workflowId = await harness.create([{ type: "parallel", branches: { a: [ask("a")], b: [ask("b")] } }]);
      const runId = await harness.start(workflowId);
      const [first] = await pollUntil(async () => ((await asked()).length === 2 ? asked() : undefined));
      const run = `/workflows/${workflowId}/runs/${runId}`;
      await pollUntil(async () => (await harness.member.get("/jobs?status=awaiting")).text.includes(runId));
      return { run, approvalId: first?.approvalId ?? "" };
    };
    const cancelled = await begin();
    loseAnswer(store.workflowRuns, "finish");
    expect((await harness.member.post(`${cancelled.run}/cancel`)).status).to.equal(503);
    expect((await harness.member.get(cancelled.run)).at("status")).to.equal("cancelled");
    expect(await asked()).to.deep.equal([]);
    const rejected = await begin();
    loseAnswer(store.workflowRuns, "finish");
    const decide = `/workflows/approvals/${rejected.approvalId}/decide`;
    expect((await harness.admin.post(decide, { decision: "rejected" })).status).to.equal(503);
    const approval = await store.approvals.get(await tenantOf(harness.test), rejected.approvalId);
    if (approval && approval.kind !== "agent") await workflows.settleDecision(approval); // as the sweep does
    expect((await harness.member.get(rejected.run)).at("status")).to.equal("rejected");
    expect(await asked()).to.deep.equal([]);
  });

  describe("that has failed", () => {
    let isUp = false;
    let calls: string[] = [];
    before(() => {
      harness.site.on("/flaky", ({ body }, response) => {
        const { n } = JSON.parse(body);
        calls.push(String(n));
        response.writeHead(isUp || n !== 3 ? 204 : 400).end();
      });
    });
    const steps = () => [
      { type: "webhook", id: "first", url: `${harness.site.origin}/flaky`, method: "POST", body: { n: "first" } },
      {
        ...{ type: "for_each", id: "loop", items: "[1, 2, 3, 4]", concurrency: 1 },
        do: [
          { type: "webhook", url: `${harness.site.origin}/flaky`, method: "POST", body: { n: "{{ item }}" } },
          set("n", { n: "{{ item }}" }),
        ],
      },
    ];

    /** Has jobs that no queue has been given looked for at once. */
    const hurry = async () => {
      const queued = (await harness.member.get("/jobs?status=queued")).at("data") as { jobId: string }[];
      const ids = queued.map(({ jobId }) => jobId);
      await harness.test.platform.store.jobs.rescheduleCheck(ids, new Date());
    };

    it("is started again where it failed, and keeps what was done", async () => {
      const workflowId = await harness.create(steps());
      const failed = await harness.reach(workflowId, await harness.start(workflowId), "failed");
      expect(calls).to.deep.equal(["first", "1", "2", "3"]);
      [isUp, calls] = [true, []];
      const path = `/workflows/${workflowId}/runs/${failed.string("runId")}`;
      const again = await harness.member.post(`${path}/retry`);
      expect(again.status, again.text).to.equal(202);
      const run = await harness.reach(workflowId, again.string("runId"), "completed", "failed");
      expect(run.at("output"), run.text).to.deep.equal([1, 2, 3, 4].map((n) => ({ n })));
      expect(calls).to.deep.equal(["3", "4"]);
      expect(run.at("retryOf")).to.equal(failed.at("runId"));
      expect((await harness.member.post(`/workflows/${workflowId}/runs/${run.string("runId")}/retry`)).status).to.equal(
        409,
      );
      expect((await harness.stranger.post(`${path}/retry`)).status).to.equal(404);
    });

    it("is started again once, and goes on, when the store has taken the job and its answer was lost", async () => {
      isUp = false;
      const workflowId = await harness.create(steps());
      const failed = await harness.reach(workflowId, await harness.start(workflowId), "failed");
      [isUp, calls] = [true, []];
      loseAnswer(harness.test.platform.store.jobs, "insert");
      const path = `/workflows/${workflowId}/runs/${failed.string("runId")}/retry`;
      const retry = () => harness.member.post(path, undefined, { headers: { "idempotency-key": "lost" } });
      expect((await retry()).status).to.equal(503);
      const again = await retry();
      expect(again.status, again.text).to.equal(202);
      await hurry();
      const run = await harness.reach(workflowId, again.string("runId"), "completed", "failed");
      expect([run.at("status"), run.at("output")], run.text).to.deep.equal([
        "completed",
        [1, 2, 3, 4].map((n) => ({ n })),
      ]);
      expect(calls).to.deep.equal(["3", "4"]);
    });

    it("leaves nothing behind of a start that was cut before its job was there", async () => {
      isUp = false;
      const workflowId = await harness.create(steps());
      const failed = await harness.reach(workflowId, await harness.start(workflowId), "failed");
      const { store, works } = harness.test.platform;
      const { insert } = store.workflowRuns;
      let cut = "";
      store.workflowRuns.insert = async (record) => {
        store.workflowRuns.insert = insert;
        await insert(record);
        await store.workflowRuns.copyResults(
          { tenantId: record.tenantId, _id: failed.string("runId") },
          record._id,
          () => true,
        );
        cut = record._id;
        throw new Error("the process is gone");
      };
      const path = `/workflows/${workflowId}/runs/${failed.string("runId")}/retry`;
      expect((await harness.member.post(path)).status).to.equal(500);
      const tenantId = await tenantOf(harness.test);
      expect(await store.workflowRuns.steps(tenantId, cut)).not.to.have.length(0);
      await sweepWorks(harness.test.platform.jobs, works, 0);
      expect(await store.workflowRuns.get(tenantId, cut)).to.equal(null);
      expect(await store.workflowRuns.steps(tenantId, cut)).to.deep.equal([]);
    });

    it("is repeated by its job, alone or with many, and others are not", async () => {
      isUp = false;
      const workflowId = await harness.create(steps());
      const failed = await harness.reach(workflowId, await harness.start(workflowId), "failed");
      isUp = true;
      const repeated = await harness.member.post(`/jobs/${failed.string("jobId")}/retry`);
      expect(repeated.status, repeated.text).to.equal(202);
      await harness.reach(workflowId, repeated.string("runId"), "completed");
      expect((await harness.member.post(`/jobs/${repeated.string("jobId")}/retry`)).status).to.equal(409);
    });

    it("is repeated with many once, when a call was cut, was made again, or came twice", async () => {
      isUp = false;
      const workflowId = await harness.create(steps());
      const many = () => harness.member.post("/jobs/retry", { workflowId, status: "failed" });
      const runs = await Promise.all([1, 2, 3].map(() => harness.start(workflowId)));
      for (const runId of runs) await harness.reach(workflowId, runId, "failed");
      isUp = true;
      loseAnswer(harness.test.platform.store.jobs, "insert", 1);
      expect((await many()).status).to.equal(503);
      const [first, second] = await Promise.all([many(), many()]);
      expect([first.status, second.status], first.text + second.text).to.deep.equal([200, 200]);
      await hurry();
      expect((await many()).body).to.deep.equal({ done: 0, skipped: 0, hasMore: false });
      const repeats = await pollUntil(async () => {
        const { data } = (await harness.member.get(`/workflows/${workflowId}/runs`)).body as {
          data: { status: string }[];
        };
        return data.every(({ status }) => status === "completed" || status === "failed") ? data : undefined;
      });
      expect(repeats.map(({ status }) => status).sort()).to.deep.equal([
        ...["completed", "completed", "completed"],
        ...["failed", "failed", "failed"],
      ]);
    });

    it("is stopped with many others", async () => {
      const workflowId = await harness.create([{ type: "wait", event: "never" }]);
      const runs = [await harness.start(workflowId), await harness.start(workflowId)];
      const awaiting = async () => (await harness.member.get("/jobs?status=awaiting")).at("data") as object[];
      await pollUntil(async () => (await awaiting()).length === 2);
      const stopped = await harness.member.post("/jobs/cancel", { kind: "workflow", status: "awaiting" });
      expect(stopped.at("done"), stopped.text).to.equal(2);
      for (const runId of runs) await harness.reach(workflowId, runId, "cancelled");
    });
  });

  it("ends two lists that run at the same time, each item done once, whichever ends first", async () => {
    const done: string[] = [];
    harness.site.on("/count", ({ body }, response) => {
      done.push(body);
      response.writeHead(204).end();
    });
    const list = (id: string, ms: number) => ({
      ...{ type: "for_each", id, items: `input.${id}`, concurrency: 20 },
      do: [
        { type: "wait", ms },
        { type: "webhook", url: `${harness.site.origin}/count`, method: "POST", body: { at: `${id} {{ item }}` } },
        set(`of_${id}`, { n: "{{ item }}" }),
      ],
    });
    const upTo = (count: number) => Array.from({ length: count }, (_, n) => n);
    const run = await harness.run([{ type: "parallel", branches: { a: [list("short", 1)], b: [list("long", 5)] } }], {
      short: upTo(9),
      long: upTo(99),
    });
    expect(run.at("status"), run.text.slice(0, 500)).to.equal("completed");
    expect(run.at("output.b")).to.deep.equal(upTo(99).map((n) => ({ n })));
    expect(done.length, "effects").to.equal(108);
    expect(new Set(done).size).to.equal(108);
    expect(stepsOf(run).find(({ id }) => id === "long")).to.have.deep.property("items", {
      done: 99,
      total: 99,
      failed: 0,
    });
  });

  it("leaves the longest outputs of a list on its items, where they can be read", async () => {
    const long = "x".repeat(90_000);
    const items = Array.from({ length: 60 }, (_, n) => n);
    const run = await harness.run(
      [
        {
          ...{ type: "for_each", id: "loop", items: "input.items" },
          do: [set("text", { v: "{{ item < 5 ? string(item) : input.long }}" })],
        },
      ],
      { items, long },
    );
    const output = run.at("output") as { v?: string; ref?: string }[];
    expect(output).to.have.length(60);
    expect(output[4]).to.deep.equal({ v: "4" });
    expect(output[5]).to.deep.equal({ ref: "0/do[5]", characters: long.length + 8 });
    const path = `/workflows/${run.string("workflowId")}/runs/${run.string("runId")}/items`;
    const page = await harness.member.get(`${path}?path=0&cursor=5&limit=2`);
    expect(page.at("data[0].output")).to.deep.equal({ v: long });
    expect(page.at("nextCursor")).to.equal("7");
    expect((await harness.stranger.get(`${path}?path=0`)).status).to.equal(404);
  });
});
