import { expect } from "chai";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type HostProcess, startProcess } from "../support/processes.ts";
import { cancelledWithinMs } from "../support/promised-times.ts";
import { type ScriptedUpstream, startScriptedUpstream, type UpstreamCall } from "../support/scripted-upstream.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const later = { headers: { prefer: "respond-async" } };
const models = ["gpt-5.4-mini", "gpt-5.4-nano", "gpt-5.4"];
const isSecondRound = ({ system }: UpstreamCall) => system.includes("those of the other agents");
const isJudge = ({ system }: UpstreamCall) => system.includes("judge of a debate");
const prose = ({ model }: UpstreamCall) =>
  `${model}: there is much to say for either of the two, and the load decides in the end.`;

describe("a debate as a job", function () {
  this.timeout(60_000);
  let upstream: ScriptedUpstream;
  let test: TestPlatform;
  let member: ApiClient;
  const processes: HostProcess[] = [];
  before(async () => {
    upstream = await startScriptedUpstream();
    test = await startPlatform({
      workers: false,
      env: {
        OPENAI_API_KEY: "sk-test",
        OPENAI_BASE_URL: upstream.url,
        PROVIDER_MAX_ATTEMPTS: "1",
        JOB_LEASE_MS: "1000",
        RECONCILE_EVERY_MS: "300",
      },
    });
    member = makeClient({ url: test.url, key: test.keys.member });
  });
  afterEach(() => Promise.all(processes.splice(0).map((one) => one.kill())));
  after(async () => {
    await test.close();
    await upstream.close();
  });

  const startWorker = async () => {
    const worker = await startProcess("workers/main.ts", test.env);
    processes.push(worker);
    return worker;
  };
  const submit = async (profile = "coding") => {
    const body = { pattern: "debate", profile, input: "Redis or Memcached?", models };
    const accepted = await member.post("/composite/execute", body, later);
    expect(accepted.status).to.equal(202);
    return { jobId: accepted.string("jobId"), executionId: accepted.string("executionId") };
  };
  /** Answers the first round, and keeps the second one waiting until it is let go. */
  const holdSecondRound = () => {
    const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
    upstream.play((call) => (isSecondRound(call) ? held.then(() => prose(call)) : prose(call)));
    return letGo;
  };
  const secondRoundAsked = () =>
    pollUntil(() => upstream.calls.filter(isSecondRound).length >= 3, { what: "the second round" });

  it("shows its steps live, and cancelled in the middle stops its model calls and makes no more", async () => {
    const letGo = holdSecondRound();
    await startWorker();
    const { jobId, executionId } = await submit();
    const { events } = await member.events("GET", `/jobs/${jobId}/events`);
    const steps: Record<string, unknown>[] = [];
    let last: unknown;
    let cancelledAt = 0;
    for await (const { event, data } of events) {
      if (event === "end") last = data;
      if (event !== "step") continue;
      steps.push(data as Record<string, unknown>); // an event of a step is an object
      if (steps.length < 3) continue;
      await secondRoundAsked();
      cancelledAt = performance.now();
      expect((await member.post(`/jobs/${jobId}/cancel`)).status).to.equal(200);
    }
    expect(steps.map(({ step }) => step)).to.have.members([1, 2, 3].map((agent) => `round-1/agent-${agent}`));
    expect(steps[0]).to.include({ role: "agent", status: "completed" });
    expect(JSON.stringify(steps)).not.to.include("much to say");
    const ends = await Promise.all(upstream.calls.filter(isSecondRound).map(({ ended }) => ended));
    expect(performance.now() - cancelledAt).to.be.below(cancelledWithinMs);
    expect(ends).to.deep.equal(["left", "left", "left"]);
    letGo();
    expect(last).to.include({ jobId, status: "cancelled" });
    expect(upstream.calls).to.have.length(6);
    const trace = await member.get(`/composite/executions/${executionId}`);
    expect([trace.at("status"), trace.at("error.code")]).to.deep.equal(["cancelled", "cancelled"]);
    expect(trace.at("steps")).to.have.length(3);
  });

  it("resumes from the recorded answers when its worker is killed in the middle", async () => {
    const letGo = holdSecondRound();
    const victim = await startWorker();
    const { jobId, executionId } = await submit();
    await secondRoundAsked();
    await victim.kill();
    letGo();
    await startWorker();
    const job = await pollUntil(
      async () => {
        const job = await member.get(`/jobs/${jobId}`);
        return job.at("status") === "completed" ? job : undefined;
      },
      { timeoutMs: 30_000, what: "the job's completion" },
    );
    expect(job.at("attempts"), "the lost one does not count: the run had come further").to.equal(1);
    expect(job.at("result.stepsExecuted")).to.equal(7);
    const firstRound = upstream.calls.filter((call) => !isSecondRound(call) && !isJudge(call));
    expect(firstRound).to.have.length(3);
    expect(upstream.calls.filter(isJudge)).to.have.length(1);
    expect((await member.get(`/composite/executions/${executionId}`)).at("steps")).to.have.length(7);
  });

  it("erases the input of a regulated run that was cancelled while queued", async () => {
    const { jobId, executionId } = await submit("healthcare");
    const inputOf = async () => (await member.get(`/composite/executions/${executionId}`)).at("input");
    expect(await inputOf()).to.be.a("string");
    await member.post(`/jobs/${jobId}/cancel`);
    expect(await inputOf()).to.equal(undefined);
  });
});
