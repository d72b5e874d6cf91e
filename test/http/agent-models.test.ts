import { expect } from "chai";
import { patternIds } from "../../src/composite/patterns.ts";
import type { ReservedJob } from "../../src/jobs/submit.ts";
import { AppError } from "../../src/lib/errors.ts";
import { type AgentHarness, openAgentHarness } from "../support/agent-harness.ts";
import { type AgentUpstream, holdAnswer } from "../support/agent-upstream.ts";
import { type ApiClient, makeClient, valueAt } from "../support/http-client.ts";
import { pdf, pictureOf } from "../support/media.ts";
import { pollUntil } from "../support/poll-until.ts";

const CHAT = "/v1/chat/completions";
const messages = [{ role: "user", content: "What is 4 + 2?" }];

describe("chats with an agent in the place of a model", function () {
  this.timeout(30_000);
  let harness: AgentHarness;
  let upstream: AgentUpstream;
  let member: ApiClient;
  let agentId: string;
  before(async () => {
    harness = await openAgentHarness();
    ({ upstream, member } = harness);
    agentId = await makeAgent("Adder");
  });
  after(() => harness.close());

  const makeAgent = async (name: string, fields: object = {}, client = member) => {
    const about = { name, model: harness.model, systemPrompt: "You add.", tools: [{ type: "calculator" }] };
    return (await client.post("/agents", { ...about, ...fields })).string("agentId");
  };
  const add = () =>
    upstream.play(({ turn }) =>
      turn === 1
        ? { text: "I add.", calls: [{ name: "calculator", arguments: { expression: "4 + 2" } }] }
        : { text: "It is 6." },
    );
  const hold = () => holdAnswer(upstream, "At last.");
  const auditLogOf = (runId: string) => member.get(`/runs/${runId}/trail`);
  const newestRun = async (ofAgent = agentId) =>
    (await member.get(`/agents/${ofAgent}/runs?limit=1`)).string("data[0].runId");

  it("return the answer of a durable run, with its steps as reasoning and its cost", async () => {
    add();
    const answer = await member.post(CHAT, { model: "agent:Adder", messages });
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.at("model")).to.equal("agent:Adder");
    expect(answer.at("choices[0].message.content")).to.equal("It is 6.");
    expect(answer.at("choices[0].message.reasoning_content")).to.equal('I add.\n[calculator] {"expression":"4 + 2"}\n');
    expect(answer.at("choices[0].finish_reason")).to.equal("stop");
    expect(answer.at("usage")).to.deep.equal({ prompt_tokens: 20, completion_tokens: 10, total_tokens: 30 });
    const run = await auditLogOf(answer.string("logId"));
    expect(run.body).to.include({ agentId, input: "What is 4 + 2?", status: "completed", finalOutput: "It is 6." });
    expect([run.at("costUsd"), run.at("tokensUsed")]).to.deep.equal([answer.at("costUsd"), 30]);
    expect(run.at("integrity.verified")).to.equal(true);
    const job = await member.get(`/jobs/${run.string("jobId")}`);
    expect(job.body).to.include({ kind: "agent", status: "completed" });
  });

  it("stream the steps as they happen, and then the answer", async () => {
    const last = Promise.withResolvers<void>();
    upstream.play(async ({ turn }) => {
      if (turn === 1) return { text: "I add.", calls: [{ name: "calculator", arguments: { expression: "4 + 2" } }] };
      await last.promise;
      return { text: "It is 6." };
    });
    const body = { model: "agent:Adder", messages, stream: true, stream_options: { include_usage: true } };
    const { events } = await member.events("POST", CHAT, { body });
    const deltas: unknown[] = [];
    for await (const { data } of events) {
      deltas.push(valueAt(data, "choices[0].delta") ?? data);
      // The model is asked for its answer only now: so the step came while the run went on.
      if (String(valueAt(data, "choices[0].delta.reasoning_content")).startsWith("[calculator]")) last.resolve();
    }
    expect(deltas.slice(0, -3)).to.deep.equal([
      { role: "assistant", content: "" },
      { reasoning_content: "I add.\n" },
      { reasoning_content: '[calculator] {"expression":"4 + 2"}\n' },
      { content: "It is 6." },
    ]);
    const usage = { prompt_tokens: 20, completion_tokens: 10, total_tokens: 30 };
    expect(valueAt(deltas.at(-2), "usage")).to.deep.equal(usage);
    expect(deltas.at(-1)).to.equal("[DONE]");
  });

  it("have the same on /ai/chat, and are in no batch", async () => {
    add();
    const answer = await member.post("/ai/chat", { model: "agent:Adder", messages, prefer_async: true });
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.headers.get("x-svc-batch")).to.equal("ineligible; reason=run");
    expect(answer.body).to.include({ text: "It is 6.", inputTokens: 20, outputTokens: 10, model: "agent:Adder" });
    const { events } = await member.events("POST", "/ai/chat", {
      body: { model: "agent:Adder", messages, stream: true },
    });
    const deltas = (await Array.fromAsync(events)).map(({ data }) => valueAt(data, "delta") ?? valueAt(data, "done"));
    expect(deltas).to.deep.equal([
      { content: "", reasoning: "I add.\n" },
      { content: "", reasoning: '[calculator] {"expression":"4 + 2"}\n' },
      { content: "It is 6." },
      true,
    ]);
  });

  it("give the model the earlier messages, and keep them in the run", async () => {
    upstream.play(() => ({ text: "As before." }));
    const earlier = [
      { role: "system", content: "Be brief." },
      { role: "user", content: "What is 1 + 1?" },
      { role: "assistant", content: "2" },
    ];
    const again = { role: "user", content: "And again?" };
    const answer = await member.post(CHAT, { model: `agent:${agentId}`, messages: [...earlier, again] });
    expect(answer.status, answer.text).to.equal(200);
    const said = upstream.calls[0]?.messages.slice(1).map(({ role, content }) => ({ role, content }));
    expect(said).to.deep.equal([...earlier, again]);
    const run = await auditLogOf(answer.string("logId"));
    expect([run.at("history"), run.at("input")]).to.deep.equal([earlier, "And again?"]);
    expect(run.at("integrity.verified")).to.equal(true);
  });

  it("have each tool call as an item of a response, which the next response goes on from", async () => {
    add();
    const response = await member.post("/v1/responses", { model: "agent:Adder", input: "What is 4 + 2?" });
    expect(response.status, response.text).to.equal(200);
    expect(response.at("output[0].summary[0].text")).to.equal("I add.\n");
    expect(response.at("output[1]")).to.include({
      type: "mcp_call",
      status: "completed",
      server_label: "Adder",
      name: "calculator",
      arguments: '{"expression":"4 + 2"}',
      output: "6",
      error: null,
    });
    expect(response.at("output[2].content[0].text")).to.equal("It is 6.");
    expect([response.at("output[3]"), response.at("usage.total_tokens")]).to.deep.equal([undefined, 30]);
    const read = await member.get(`/v1/responses/${response.string("id")}`);
    expect(read.at("output")).to.deep.equal(response.at("output"));
    upstream.play(() => ({ text: "7." }));
    const next = await member.post("/v1/responses", {
      model: "agent:Adder",
      input: "And one more?",
      previous_response_id: response.string("id"),
    });
    expect(next.status, next.text).to.equal(200);
    const run = await auditLogOf(next.string("logId"));
    expect(run.at("history")).to.deep.equal([...messages, { role: "assistant", content: "It is 6." }]);
  });

  it("show failed and parallel calls in the order in which they were asked for", async () => {
    upstream.play(({ turn }) =>
      turn === 1
        ? {
            calls: [
              { name: "calculator", arguments: { expression: "1 / " } },
              { name: "nothing", arguments: {} },
              { name: "calculator", arguments: { expression: "1 + 1" } },
            ],
          }
        : { text: "Two." },
    );
    const body = { model: "agent:Adder", input: "Add.", store: false };
    const response = await member.post("/v1/responses", body);
    const calls = (response.at("output") as { type: string; status: string; error: string | null }[]).slice(0, 3);
    expect(calls.map(({ type, status }) => [type, status])).to.deep.equal([
      ["mcp_call", "failed"],
      ["mcp_call", "failed"],
      ["mcp_call", "completed"],
    ]);
    expect(calls[1]?.error).to.contain("There is no tool nothing.");
    const { events } = await member.events("POST", "/v1/responses", { body: { ...body, stream: true } });
    const ended = [];
    for await (const { event, data } of events) {
      if (event === "response.output_item.done") ended.push(valueAt(data, "output_index"));
    }
    expect(ended).to.deep.equal([0, 1, 2, 3]);
  });

  it("name settings that the agent does not use, or refuse them if the caller is strict", async () => {
    upstream.play(() => ({ text: "ok" }));
    const tool = { type: "function", function: { name: "weather", parameters: { type: "object" } } };
    const call = { id: "call_1", type: "function", function: { name: "weather", arguments: "{}" } };
    const body = {
      model: "agent:Adder",
      messages: [
        ...messages,
        { role: "assistant", content: null, tool_calls: [call] },
        { role: "tool", tool_call_id: "call_1", content: "sunny" },
        ...messages,
      ],
      tools: [tool],
      temperature: 0,
      max_tokens: 9,
      user: "u",
    };
    const answer = await member.post(CHAT, body);
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.headers.get("x-svc-ignored")?.split(", ")).to.have.members([
      "tools",
      "temperature",
      "max_tokens",
      "user",
      "messages[1].tool_calls",
      "messages[2].content",
    ]);
    const strict = await member.post(CHAT, body, { headers: { "x-svc-options": "strict=true" } });
    expect([strict.status, strict.at("error.code")]).to.deep.equal([400, "invalid_request"]);
    const response = await member.post("/v1/responses", {
      model: "agent:Adder",
      input: "Hi",
      max_output_tokens: 20,
      text: { verbosity: "low" },
      store: false,
    });
    const ignored = response.headers.get("x-svc-ignored")?.split(", ");
    expect(ignored).to.have.members(["text.verbosity", "max_output_tokens"]);
  });

  const unusable: [string, object, string, string][] = [
    [
      "a picture",
      { content: [{ type: "image_url", image_url: { url: pictureOf(9, 9) } }] },
      "messages[0].content[0]",
      "an agent takes no pictures",
    ],
    [
      "a file",
      { content: [{ type: "file", file: { file_data: pdf } }] },
      "messages[0].content[0]",
      "an agent takes no files",
    ],
    [
      "a turn of the assistant at the end",
      { role: "assistant", content: "So" },
      "messages[0].content",
      "must have the last word",
    ],
    ["blanks alone", { content: "  \n" }, "messages[0].content", "must hold more than blanks"],
    ["more than a run takes", { content: "x".repeat(200_001) }, "messages[0].content", "200000"],
  ];
  for (const [what, message, param, words] of unusable) {
    it(`are refused for ${what}`, async () => {
      const answer = await member.post(CHAT, { model: "agent:Adder", messages: [{ role: "user", ...message }] });
      expect([answer.status, answer.at("error.code"), answer.at("error.param")], answer.text).to.deep.equal([
        400,
        "invalid_request",
        param,
      ]);
      expect(answer.string("error.message")).to.contain(words);
    });
  }

  it("refuse a conversation that is too long, by the name of its field", async () => {
    const long = Array.from({ length: 3 }, () => ({ role: "user", content: "x".repeat(100_000) }));
    const answer = await member.post(CHAT, { model: "agent:Adder", messages: long.concat(messages) });
    expect([answer.status, answer.at("error.param")]).to.deep.equal([400, "messages"]);
    expect(answer.string("error.message")).to.equal("messages is longer than 200000 characters.");
  });

  it("refuse pictures with 422 if a tool has a regulated profile, and let its guard read every message", async () => {
    const config = { pattern: "critique", profile: "healthcare" };
    const guarded = await makeAgent("Nurse", { tools: [{ type: "composite", config }] });
    const model = `agent:${guarded}`;
    const picture = { type: "image_url", image_url: { url: pictureOf(9, 9) } };
    const shown = await member.post(CHAT, { model, messages: [{ role: "user", content: [picture] }] });
    expect([shown.status, shown.at("error.code")], shown.text).to.deep.equal([422, "compliance_blocked"]);
    expect([shown.at("error.param"), shown.at("error.details.profile")]).to.deep.equal([
      "messages[0].content[0]",
      "healthcare",
    ]);
    const earlier = { role: "system", content: "The SSN of the patient is 219-47-8831." };
    for (const stream of [false, true]) {
      const said = await member.post(CHAT, { model, stream, messages: [earlier, ...messages] });
      expect([said.status, said.at("error.param")], said.text).to.deep.equal([422, "messages[0].content"]);
      expect(said.at("error.details.findings[0].field")).to.equal("messages[0].content");
    }
    expect((await member.get(`/agents/${guarded}/runs`)).at("data")).to.deep.equal([]);
  });

  it("know no agent of another tenant, nor a name that is unclear", async () => {
    const named = await makeAgent("Foreign", {}, harness.stranger);
    for (const model of [`agent:${named}`, "agent:Foreign", "agent:", "agent:agt_00000000000000000000000000"]) {
      for (const [path, body] of [
        [CHAT, { messages }],
        [CHAT, { messages, stream: true }],
        ["/v1/responses", { input: "Hi" }],
      ] as const) {
        const answer = await member.post(path, { model, ...body });
        expect([answer.status, answer.at("error.code"), answer.at("error.param")], answer.text).to.deep.equal([
          ...(path.startsWith("/v1") ? [404, "model_not_found"] : [400, "unknown_model"]),
          "model",
        ]);
      }
      expect((await member.get(`/v1/models/${encodeURIComponent(model)}`)).status).to.equal(404);
    }
    const twins = [await makeAgent("Twin"), await makeAgent("Twin")];
    const answer = await member.post(CHAT, { model: "agent:Twin", messages });
    expect([answer.status, answer.at("error.param")]).to.deep.equal([400, "model"]);
    expect(answer.at("error.details.agentIds")).to.have.members(twins);
  });

  it("are listed as models, by names that are clear", async () => {
    const twins = [await makeAgent("Double"), await makeAgent("Double")];
    const { data } = (await member.get("/v1/models")).body as { data: { id: string; owned_by: string }[] };
    const idsOf = (owner: string) => data.flatMap(({ id, owned_by: by }) => (by === owner ? [id] : []));
    expect(idsOf("agents")).to.include.members(["agent:Adder", ...twins.map((id) => `agent:${id}`)]);
    expect(idsOf("agents")).not.to.include.members(["agent:Double", "agent:Foreign"]);
    expect(idsOf("composite")).to.deep.equal(patternIds.map((id) => `composite:${id}`));
    for (const id of ["agent:Adder", "composite:debate", "composite:debate:legal"]) {
      expect((await member.get(`/v1/models/${encodeURIComponent(id)}`)).at("id")).to.equal(id);
    }
    expect((await member.get("/v1/models/composite%3Adebate%3Atoys")).status).to.equal(404);
  });

  it("go on when the client disconnects", async () => {
    const { asked, open } = hold();
    const leaving = new AbortController();
    const calling = member.post(CHAT, { model: "agent:Adder", messages }, { signal: leaving.signal });
    await asked;
    leaving.abort();
    await calling.catch(() => undefined);
    const runId = await newestRun();
    expect((await auditLogOf(runId)).at("status")).to.equal("running");
    open();
    await pollUntil(async () => (await auditLogOf(runId)).at("finalOutput") === "At last.");
  });

  it("end with the run's cancellation", async () => {
    const { asked, open } = hold();
    const calling = member.post(CHAT, { model: "agent:Adder", messages });
    await asked;
    const run = await auditLogOf(await newestRun());
    await member.post(`/jobs/${run.string("jobId")}/cancel`);
    const answer = await calling;
    open();
    expect([answer.status, answer.at("error.code")], answer.text).to.deep.equal([409, "wrong_state"]);
    expect(answer.at("error.details.runId")).to.equal(run.at("runId"));
  });

  it("end with the run's failure, as an error or as the last event", async () => {
    upstream.play(() => ({ status: 400 }));
    const answer = await member.post(CHAT, { model: "agent:Adder", messages });
    expect([answer.status, answer.at("error.code")], answer.text).to.deep.equal([400, "provider_rejected"]);
    expect(answer.at("error.details.runId")).to.equal(await newestRun());
    const body = { model: "agent:Adder", input: "Hi", stream: true };
    const { events } = await member.events("POST", "/v1/responses", { body });
    const types = (await Array.fromAsync(events)).map(({ event }) => event);
    expect(types).to.deep.equal(["response.created", "response.in_progress", "response.failed"]);
  });

  it("make one run for one idempotency key", async () => {
    add();
    const headers = { "idempotency-key": "one-run" };
    const first = await member.post(CHAT, { model: "agent:Adder", messages }, { headers });
    const again = await member.post(CHAT, { model: "agent:Adder", messages }, { headers });
    expect(again.headers.get("idempotent-replayed")).to.equal("true");
    expect(again.at("logId")).to.equal(first.at("logId"));
  });

  it("find the run of an earlier attempt at the same call", async () => {
    add();
    const { platform, key } = harness;
    const known = await platform.tenancy.authenticate(key);
    if (known === null) throw new Error("the key is not known");
    const signal = new AbortController().signal;
    const runJob: ReservedJob = { jobId: "job_00000000000000000000000007", mayBeThere: true, state: "unused" };
    const caller = { ...known, surface: "openai", signal, runJob };
    const chat = { model: "agent:Adder", messages: [{ role: "user" as const, content: "What is 4 + 2?" }] };
    const first = await platform.chat.complete(caller, chat);
    const again = await platform.chat.complete(caller, chat);
    expect(again).to.deep.include({ logId: first.logId, text: "It is 6.", steps: first.steps });
    expect(upstream.calls).to.have.length(2);
  });

  it("cancel the run when their caller is cancelled", async () => {
    const { asked, open } = hold();
    const { platform, key } = harness;
    const known = await platform.tenancy.authenticate(key);
    if (known === null) throw new Error("the key is not known");
    const stopping = new AbortController();
    const { signal } = stopping;
    const chat = { model: "agent:Adder", messages: [{ role: "user" as const, content: "Hi" }] };
    const calling = platform.chat.complete({ ...known, surface: "responses", signal }, chat).catch(() => "cancelled");
    await asked;
    stopping.abort(new AppError("cancelled", "The caller was cancelled."));
    expect(await calling).to.equal("cancelled");
    open();
    const runId = await newestRun();
    await pollUntil(async () => (await auditLogOf(runId)).at("status") === "cancelled");
  });

  it("are refused for a widget's key, whatever the surface", async () => {
    const made = await harness.admin.post("/ai/widget/key", {});
    const widget = makeClient({ url: harness.url, key: made.string("key") });
    expect((await widget.post(CHAT, { model: "agent:Adder", messages })).status).to.equal(403);
    const answer = await widget.post("/ai/chat", { model: "agent:Adder", messages });
    expect([answer.status, answer.at("error.code")]).to.deep.equal([400, "unknown_model"]);
  });

  it("are refused without budget", async () => {
    const { platform, key } = harness;
    const { tenantId = "" } = (await platform.tenancy.authenticate(key)) ?? {};
    await platform.gateway.setBudget(tenantId, 1e-6);
    const answer = await member.post(CHAT, { model: "agent:Adder", messages, stream: true });
    await platform.gateway.setBudget(tenantId, null);
    expect([answer.status, answer.at("error.code")], answer.text).to.deep.equal([402, "budget_exhausted"]);
  });
});
