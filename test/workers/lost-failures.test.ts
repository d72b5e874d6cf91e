import { expect } from "chai";
import type { Work } from "../../src/jobs/work.ts";
import { type AgentUpstream, startAgentUpstream } from "../support/agent-upstream.ts";
import { type DocumentServer, startDocumentServer } from "../support/document-server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { takeTurn } from "../support/worker-turn.ts";

type Begun = { jobId: string; work: Work; path: string };

const later = { headers: { prefer: "respond-async" } };
const model = "gpt-5.4-mini";

/** No worker of the queues runs. A job's only turn loses it while the other side takes its time, and then gets a failure. */
describe("a failure in a worker that has lost its job", () => {
  let upstream: AgentUpstream;
  let site: DocumentServer;
  let test: TestPlatform;
  let owner: ApiClient;
  before(async () => {
    [upstream, site] = await Promise.all([startAgentUpstream(), startDocumentServer()]);
    const env = {
      OPENAI_API_KEY: "sk-test",
      OPENAI_BASE_URL: upstream.url,
      PROVIDER_MAX_ATTEMPTS: "1",
      FETCH_ALLOW_ORIGINS: site.origin,
    };
    test = await startPlatform({ workers: false, env });
    owner = makeClient({ url: test.url, key: test.keys.owner });
  });
  after(async () => {
    await test.close();
    await upstream.close();
    site.close();
  });

  const accept = async (path: string, body: object) => {
    const accepted = await owner.post(path, body, later);
    expect(accepted.status, accepted.text).to.equal(202);
    return { accepted, jobId: accepted.string("jobId") };
  };
  /** The other side fails, as soon as the job has gone to another worker. */
  const failAfterLossOf = (jobId: string) => async () => {
    const loss = { $set: { "lease.token": "another's" } };
    await test.platform.store.jobs.change({ jobId, from: ["running"] }, loss);
    return { status: 400, body: "" };
  };
  const kinds: Record<string, () => Promise<Begun>> = {
    "a run of an agent": async () => {
      const agent = { name: "Desk", model, systemPrompt: "You answer." };
      const agentId = (await owner.post("/agents", agent)).string("agentId");
      const { accepted, jobId } = await accept(`/agents/${agentId}/run`, { input: "What is a lease?" });
      upstream.play(failAfterLossOf(jobId));
      return { jobId, work: test.platform.agents.work, path: `/agents/${agentId}/runs/${accepted.string("runId")}` };
    },
    "a run of a workflow": async () => {
      const steps = [{ type: "ai_completion", model, prompt: "What is a lease?" }];
      const workflowId = (await owner.post("/workflows", { name: "Desk", steps })).string("workflowId");
      const { accepted, jobId } = await accept(`/workflows/${workflowId}/execute`, {});
      upstream.play(failAfterLossOf(jobId));
      const path = `/workflows/${workflowId}/runs/${accepted.string("runId")}`;
      return { jobId, work: test.platform.workflows.work, path };
    },
    "a composite": async () => {
      const body = { pattern: "critique", profile: "coding", input: "Redis or Memcached?", models: [model, model] };
      const { accepted, jobId } = await accept("/composite/execute", body);
      upstream.play(failAfterLossOf(jobId));
      const path = `/composite/executions/${accepted.string("executionId")}`;
      return { jobId, work: test.platform.composite.work, path };
    },
    "the indexing of a document": async () => {
      const { accepted, jobId } = await accept("/rag/ingest", { url: `${site.origin}/lease.txt` });
      site.put("/lease.txt", failAfterLossOf(jobId));
      return { jobId, work: test.platform.rag.work, path: `/rag/documents/${accepted.string("documentId")}` };
    },
  };
  for (const [what, begin] of Object.entries(kinds)) {
    it(`does not end ${what}`, async () => {
      const { jobId, work, path } = await begin();
      expect(await takeTurn(test.platform, { queue: work.queue, jobId })).to.deep.equal({ end: "done" });
      expect(await test.platform.store.jobs.findById(jobId)).to.include({ status: "running", overtaken: 1 });
      expect((await owner.get(path)).body).not.to.have.property("error");
      // The worker that has it now gives it back, as if it stopped, and the next one gets answers.
      upstream.play(() => ({ text: "A lease has an end." }));
      site.put("/lease.txt", { body: "A lease has an end." });
      const back = { $set: { status: "queued" as const }, $unset: { lease: "" as const } };
      await test.platform.store.jobs.change({ jobId, from: ["running"] }, back);
      await takeTurn(test.platform, { queue: work.queue, jobId });
      expect(await test.platform.store.jobs.findById(jobId)).to.include({ status: "completed" });
    });
  }
});
