import { expect } from "chai";
import { MongoNetworkError } from "mongodb";
import { type QueueDefinition, queues } from "../../src/jobs/queues.ts";
import { defineWork, sweepWorks } from "../../src/jobs/work.ts";
import { type ApiClient, type ApiResponse, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { withoutRecords } from "../support/scripted-queue.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf, viewerOf } from "../support/tenant-of.ts";

type Made = { jobId: string /** Where a client looks at the record. */; path: string };
type Kind = {
  name: string;
  submit(): Promise<ApiResponse>;
  made(answer: ApiResponse): Promise<Made>;
  /** What the record reads when its job was cancelled, and when it failed. */
  cancelled: string;
  failed: string;
  /** Ids of all open records. */
  open(): Promise<string[]>;
};

const later = { headers: { prefer: "respond-async" } };

/** No worker runs: what a process leaves behind by dying is made by hand, and the sweep is asked to look at once. */
describe("work whose job ended without it", () => {
  let test: TestPlatform;
  let member: ApiClient;
  let tenantId: string;
  let agentId: string;
  let workflowId: string;
  let fileId: string;

  before(async () => {
    test = await startPlatform({ workers: false });
    member = makeClient({ url: test.url, key: test.keys.member });
    tenantId = await tenantOf(test);
    const agent = { name: "A", model: "meta-llm", systemPrompt: "Answer.", tools: [], maxIterations: 2 };
    agentId = (await member.post("/agents", agent)).string("agentId");
    const steps = [{ type: "rag_query", query: "pump" }];
    workflowId = (await member.post("/workflows", { name: "W", steps })).string("workflowId");
    const body = { model: "switchyard-offline", messages: [{ role: "user", content: "Hello." }] };
    const line = { custom_id: "one", method: "POST", url: "/v1/chat/completions", body };
    const bytes = Buffer.from(JSON.stringify(line));
    fileId = (await test.platform.batches.files.addFile(tenantId, { purpose: "batch", filename: "l.jsonl", bytes }))
      ._id;
  });
  after(() => test.close());

  it("cannot be declared without the handling of its records: otherwise this file does not compile", () => {
    const { closeOrphan: _left, ...records } = withoutRecords;
    // @ts-expect-error `closeOrphan` is missing
    defineWork({ queue: queues.ingestion, idField: "documentId", run: async () => ({}), ...records });
  });

  it("is swept behind a record that cannot be closed, whose failure is reported at the end", async () => {
    const closed: string[] = [];
    const records = ["broken", "whole"].map((_id) => ({ _id, tenantId, jobId: "job_01J00000000000000000000000" }));
    const work = defineWork({
      queue: queues.ingestion,
      idField: "documentId",
      run: async () => ({}),
      ...withoutRecords,
      unfinished: async () => records,
      async closeOrphan({ _id }) {
        if (_id === "broken") throw new Error("it cannot be closed");
        closed.push(_id);
      },
    });
    const failure = await sweepWorks(test.platform.jobs, [work, work], 0).catch((error: Error) => error.message);
    expect([failure, ...closed]).to.deep.equal(["it cannot be closed", "whole", "whole"]);
  });

  const openIds = async (queue: QueueDefinition, idField: string) => {
    const work = test.platform.works.find((one) => one.queue === queue && one.idField === idField);
    if (!work) throw new Error(`no work runs the jobs of ${queue.name}`);
    const found = await work.unfinished({ before: new Date(Date.now() + 60_000), limit: 100 });
    return found.map(({ _id }) => _id);
  };
  const ids = (path: (answer: ApiResponse) => string) => async (answer: ApiResponse) => ({
    jobId: answer.string("jobId"),
    path: path(answer),
  });
  const kinds: Kind[] = [
    {
      name: "a document",
      submit: () => member.post("/rag/ingest", { content: "The pump is bled at its valve." }, later),
      made: ids((answer) => `/rag/documents/${answer.string("documentId")}`),
      cancelled: "failed",
      failed: "failed",
      open: () => openIds(queues.ingestion, "documentId"),
    },
    {
      name: "a run of an agent",
      submit: () => member.post(`/agents/${agentId}/run`, { input: "Which valve?" }, later),
      made: ids((answer) => `/agents/${agentId}/runs/${answer.string("runId")}`),
      cancelled: "cancelled",
      failed: "failed",
      open: () => openIds(queues.agentRuns, "runId"),
    },
    {
      name: "a run of a workflow",
      submit: () => member.post(`/workflows/${workflowId}/execute`, {}),
      made: ids((answer) => `/workflows/${workflowId}/runs/${answer.string("runId")}`),
      cancelled: "cancelled",
      failed: "failed",
      open: () => openIds(queues.workflowSteps, "runId"),
    },
    {
      name: "a composite run",
      submit: () => member.post("/composite/execute", { pattern: "critique", profile: "coding", input: "Why?" }, later),
      made: ids((answer) => `/composite/executions/${answer.string("executionId")}`),
      cancelled: "cancelled",
      failed: "failed",
      open: () => openIds(queues.compositeRuns, "executionId"),
    },
    {
      name: "a response in the background",
      submit: () => member.post("/v1/responses", { model: "meta-llm", input: "Why?", background: true }),
      async made(answer) {
        const record = await test.platform.store.responses.get(tenantId, answer.string("id"));
        if (!record || !("jobId" in record)) throw new Error("the response has no job");
        return { jobId: String(record.jobId), path: `/v1/responses/${record._id}` };
      },
      cancelled: "cancelled",
      failed: "failed",
      open: () => openIds(queues.responses, "responseId"),
    },
    {
      name: "a batch of a client's file",
      submit: () =>
        member.post("/v1/batches", {
          input_file_id: fileId,
          endpoint: "/v1/chat/completions",
          completion_window: "24h",
        }),
      async made(answer) {
        const batch = await test.platform.batches.files.batch(viewerOf(tenantId), answer.string("id"));
        return { jobId: batch.jobId, path: `/v1/batches/${batch._id}` };
      },
      cancelled: "cancelled",
      failed: "failed",
      open: () => openIds(queues.batchCompletions, "fileBatchId"),
    },
    {
      name: "a batch of messages",
      submit: () =>
        member.post("/v1/messages/batches", {
          requests: [{ custom_id: "one", params: { model: "meta-llm", max_tokens: 20, messages: [] } }],
        }),
      async made(answer) {
        const batch = await test.platform.batches.files.batch(viewerOf(tenantId), answer.string("id"));
        return { jobId: batch.jobId, path: `/v1/messages/batches/${batch._id}` };
      },
      cancelled: "ended",
      failed: "ended",
      open: () => openIds(queues.batchCompletions, "fileBatchId"),
    },
  ];
  const jobIds = async () => {
    const { data } = (await member.get("/jobs?limit=200")).body as { data: { jobId: string }[] };
    return data.map(({ jobId }) => jobId);
  };
  const sweep = () => sweepWorks(test.platform.jobs, test.platform.works, -1_000);
  const statusOf = async ({ path }: Made) => {
    const { at } = await member.get(path);
    return at("status") ?? at("processing_status");
  };

  for (const kind of kinds) {
    describe(kind.name, () => {
      it("leaves nothing behind when its job is not accepted", async () => {
        const { queues } = test.platform;
        const jobs = await jobIds();
        const add = queues.add;
        queues.add = () => Promise.reject(new Error("Redis takes nothing"));
        try {
          expect((await kind.submit()).status).to.be.oneOf([500, 503, 529]);
        } finally {
          queues.add = add;
        }
        expect(await kind.open()).to.deep.equal([]);
        expect(await jobIds()).to.deep.equal(jobs);
      });

      it("leaves nothing behind when the store took its job and could not say so", async () => {
        const { store } = test.platform;
        const jobs = await jobIds();
        const { insert } = store.jobs;
        store.jobs.insert = async (record) => {
          await insert(record);
          throw new MongoNetworkError("cut");
        };
        try {
          expect((await kind.submit()).status).to.be.oneOf([503, 529]);
        } finally {
          store.jobs.insert = insert;
        }
        await pollUntil(async () => (await jobIds()).length === jobs.length, { what: "the removal of the job" });
        await sweep();
        expect(await kind.open()).to.deep.equal([]);
        expect(await jobIds()).to.deep.equal(jobs);
      });

      it("is dropped when its process died before its job existed", async () => {
        const { jobs } = test.platform;
        const { submit } = jobs;
        const [begun, cut] = [Promise.withResolvers<void>(), Promise.withResolvers<never>()];
        jobs.submit = () => {
          begun.resolve();
          return cut.promise;
        };
        const call = kind.submit();
        await begun.promise; // the record is there, and all that belongs to it
        jobs.submit = submit;
        expect(await kind.open()).to.have.length(1);
        await sweep();
        expect(await kind.open()).to.deep.equal([]);
        cut.reject(new Error("the process is gone"));
        expect((await call).status).to.be.at.least(400);
      });

      it("ends with its job when that is cancelled in the queue", async () => {
        const made = await kind.made(await kind.submit());
        expect((await member.post(`/jobs/${made.jobId}/cancel`)).status).to.equal(200);
        expect(await statusOf(made)).to.equal(kind.cancelled);
        expect(await kind.open()).to.deep.equal([]);
      });

      it("is closed by the sweep when the process that cancelled it died in between", async () => {
        const made = await kind.made(await kind.submit());
        await test.platform.jobs.cancel(tenantId, made.jobId);
        expect(await kind.open()).to.have.length(1);
        await sweep();
        expect(await statusOf(made)).to.equal(kind.cancelled);
        expect(await kind.open()).to.deep.equal([]);
      });

      it("is closed by the sweep when its job failed for good", async () => {
        const made = await kind.made(await kind.submit());
        const { claims } = test.platform.jobs;
        const claimed = await claims.claim(made.jobId, "a worker that gives up");
        if (!claimed) throw new Error("the job could not be claimed");
        await sweep();
        expect(await kind.open(), "while its job runs").to.have.length(1);
        await claims.fail(claimed.lease, { type: "server_error", code: "internal", message: "It is over." });
        await sweep();
        expect(await statusOf(made)).to.equal(kind.failed);
        expect(await kind.open()).to.deep.equal([]);
      });
    });
  }

  describe("the requests of batches of messages", () => {
    it("have results once their job is over, whether it was cancelled or failed", async () => {
      const { data } = (await member.get("/v1/messages/batches")).body as { data: { results_url: string }[] };
      const results = await Promise.all(data.map(async (one) => (await member.get(one.results_url)).text));
      expect(results.map((text) => JSON.parse(text).result)).to.deep.equal([
        {
          type: "errored",
          error: {
            type: "error",
            error: { type: "api_error", message: "It is over." },
            request_id: JSON.parse(results[0] ?? "").result.error.request_id,
          },
        },
        { type: "canceled" },
        { type: "canceled" },
      ]);
    });
  });

  describe("a file that batches have read", () => {
    it("can be deleted once their jobs are over", async () => {
      expect((await member.delete(`/v1/files/${fileId}`)).status).to.be.below(300);
    });
  });
});
