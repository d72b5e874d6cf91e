import { expect } from "chai";
import { pollUntil } from "../support/poll-until.ts";
import { chatModel as model, openWorkflowHarness, type WorkflowHarness } from "../support/workflow-harness.ts";

const CARD = "4012 8888 8888 1881";

describe("guards around tools, webhooks and the lines of batches", function () {
  this.timeout(60_000);
  let harness: WorkflowHarness;
  before(async () => {
    harness = await openWorkflowHarness({ env: { BATCH_COLLECT_MS: "200", BATCH_POLL_MS: "200" } });
  });
  after(() => harness?.close());

  const set = async (actions: object) => {
    const put = await harness.admin.request("PUT", "/guards", { body: { rules: { card_number: actions } } });
    expect(put.status, put.text).to.equal(200);
  };
  const agentWith = async () => {
    const tools = [{ type: "http_request", config: { allowedHosts: [harness.site.host] } }];
    const agent = { name: "Caller", systemPrompt: "Call it.", model, tools };
    return (await harness.admin.post("/agents", agent)).string("agentId");
  };

  it("mask what a tool is called with and what it gives, before the run keeps it and the model reads it", async () => {
    await set({ toolInput: "mask", toolOutput: "mask" });
    harness.site.on("/pay", (_, response) => {
      response.writeHead(200, { "content-type": "text/plain" }).end(`It was 5555 5555 5555 4444.`);
    });
    const url = `${harness.site.origin}/pay`;
    const calls = [{ name: "http_request", arguments: { url, method: "POST", body: { pay: CARD } } }];
    harness.model.play(({ turn }) => (turn === 1 ? { text: "Now.", calls } : { text: "Done." }));
    const run = await harness.admin.post(`/agents/${await agentWith()}/run`, { input: "Pay." });
    expect(run.status, run.text).to.equal(200);
    expect(JSON.stringify(harness.model.calls.at(-1)?.messages)).to.not.match(/4012|5555/);
    expect(JSON.stringify(harness.model.calls.at(-1)?.messages)).to.contain("[CARD_1]");
    expect(harness.site.requests.map(({ body }) => body).join()).to.not.contain("4012");
    const view = await harness.admin.get(`/agents/${run.string("agentId")}/runs/${run.string("runId")}`);
    expect(view.status).to.equal(200);
    expect(view.text).to.not.match(/4012 8888|5555 5555/);
  });

  it("keep from the model what a tool gives that is blocked", async () => {
    await set({ toolOutput: "block" });
    harness.site.on("/card", (_, response) => {
      response.writeHead(200, { "content-type": "text/plain" }).end(CARD);
    });
    const calls = [{ name: "http_request", arguments: { url: `${harness.site.origin}/card` } }];
    harness.model.play(({ turn }) => (turn === 1 ? { text: "Now.", calls } : { text: "Done." }));
    const run = await harness.admin.post(`/agents/${await agentWith()}/run`, { input: "Read." });
    expect(run.status, run.text).to.equal(200);
    const read = JSON.stringify(harness.model.calls.at(-1)?.messages);
    expect(read).to.contain("card number").and.not.contain("4012");
  });

  it("mask the body of a webhook", async () => {
    await set({ toolInput: "mask", toolOutput: "mask" });
    harness.site.on("/hook", (_, response) => {
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ got: CARD }));
    });
    const body = { card: "{{ input.card }}" };
    const run = await harness.run([{ type: "webhook", url: `${harness.site.origin}/hook`, method: "POST", body }], {
      card: CARD,
    });
    expect(harness.site.requests.at(-1)?.body).to.contain("[CARD_1]").and.not.contain("4012");
    expect(JSON.stringify(run.at("steps")))
      .to.contain("[CARD_1]")
      .and.not.contain("4012");
  });

  it("block and mask the lines of a batch one by one", async () => {
    const line = (id: string, content: string) =>
      JSON.stringify({
        custom_id: id,
        method: "POST",
        url: "/v1/chat/completions",
        body: { model: "meta-llm", messages: [{ role: "user", content }] },
      });
    const run = async () => {
      const form = new FormData();
      form.set("purpose", "batch");
      form.set("file", new File([`${line("a", `Say ${CARD}.`)}\n${line("b", "Say yes.")}\n`], "lines.jsonl"));
      const headers = { authorization: `Bearer ${harness.test.keys.admin}` };
      const sent = await fetch(`${harness.test.url}/v1/files`, { method: "POST", headers, body: form });
      const file = Object(await sent.json()).id;
      const asked = { input_file_id: file, endpoint: "/v1/chat/completions", completion_window: "24h" };
      const { id } = Object((await harness.admin.post("/v1/batches", asked)).body);
      const ended = await pollUntil(
        async () => {
          const batch = await harness.admin.get(`/v1/batches/${id}`);
          return ["completed", "failed"].includes(String(batch.at("status"))) ? batch : undefined;
        },
        { timeoutMs: 30_000 },
      );
      const read = async (name: string) => {
        const fileId = ended.at(name);
        return fileId ? (await fetch(`${harness.test.url}/v1/files/${fileId}/content`, { headers })).text() : "";
      };
      return { answers: await read("output_file_id"), errors: await read("error_file_id") };
    };
    await set({ input: "block" });
    const blocked = await run();
    expect(blocked.errors).to.contain("compliance_blocked").and.contain('"a"').and.not.contain("4012");
    expect(blocked.answers).to.contain('"b"').and.not.contain("4012");
    await set({ input: "mask", output: "mask" });
    const masked = await run();
    expect(masked.answers).to.contain('"a"').and.not.contain("4012");
  });
});
