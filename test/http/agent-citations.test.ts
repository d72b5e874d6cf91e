import { expect } from "chai";
import { type AgentHarness, openAgentHarness } from "../support/agent-harness.ts";
import type { AgentAnswer } from "../support/agent-upstream.ts";
import { type DocumentServer, startDocumentServer } from "../support/document-server.ts";
import { valueAt } from "../support/http-client.ts";

const manual =
  "# P-100\n\n## Bleeding\n\nBleed the pump before each heating season. Open the valve until no air comes.";
const contact = "# Contact\n\nWrite to service@example.org when the pump is loud.";

describe("citations of an agent that searches documents", () => {
  let harness: AgentHarness;
  let documentId: string;
  let pages: DocumentServer;
  before(async () => {
    pages = await startDocumentServer();
    harness = await openAgentHarness({ FETCH_ALLOW_ORIGINS: pages.origin });
    const { member } = harness;
    documentId = (await member.post("/rag/ingest", { title: "Pump manual", content: manual })).string("documentId");
    await member.post("/rag/ingest", { title: "Contact", content: contact });
  });
  after(async () => {
    await harness?.close();
    pages?.close();
  });

  const search = (query: string): AgentAnswer => ({ calls: [{ name: "rag_query", arguments: { query } }] });
  /** Runs an agent whose model gives these answers, one after the other. */
  const run = async (answers: AgentAnswer[], tools: object[] = [{ type: "rag_query" }]) => {
    const { member, upstream, model } = harness;
    upstream.play(({ turn }) => answers[turn - 1] ?? { text: "Done." });
    const made = await member.post("/agents", { name: "Clerk", model, systemPrompt: "You look things up.", tools });
    const agentId = made.string("agentId");
    const result = await member.post(`/agents/${agentId}/run`, { input: "Look it up." });
    expect(result.status, result.text).to.equal(200);
    const log = await member.get(`/agents/${agentId}/runs/${result.string("runId")}`);
    expect(log.at("integrity.verified")).to.equal(true);
    return { result, log };
  };
  const answer = { text: "The pump must be bled before each heating season starts." };

  it("name in the run's result what its answer rests on, and in its audit log all that it has found", async () => {
    const { result, log } = await run([search("When is the pump bled?"), answer]);
    const place = { documentId, title: "Pump manual", heading: "P-100" };
    const quote = "Bleed the pump before each heating season.";
    expect(result.at("citations")).to.have.lengthOf(1);
    expect(result.at("citations[0]")).to.deep.include({ ...place, quote });
    expect(log.at("citations")).to.deep.equal(result.at("citations"));
    const found = log.at("steps[0].citations") as Record<string, unknown>[];
    expect(found.length).to.be.greaterThan(1);
    expect(found.find(({ heading }) => heading === place.heading)).to.deep.include({ ...place, quote });
    expect(found[0]).to.not.have.any.keys("at", "length");
    const job = await harness.member.get(`/jobs/${log.string("jobId")}`);
    expect(job.at("result.citations")).to.deep.equal(result.at("citations"));
  });

  it("are each named once over several searches, also of one answer, and none that the answer does not use", async () => {
    const both = { calls: [...(search("pump bled").calls ?? []), ...(search("valve air").calls ?? [])] };
    const { result, log } = await run([both, search("bleeding"), answer]);
    expect(result.at("citations")).to.have.lengthOf(1);
    expect(log.at("steps[0].actions[1].citations")).to.be.an("array");
    const unrelated = await run([search("pump bled"), { text: "Queen Victoria opened Parliament." }]);
    expect(unrelated.result.at("citations")).to.deep.equal([]);
  });

  describe("and calls another one", () => {
    let clerkId: string;
    let deskId: string;
    before(async () => {
      const { member, model } = harness;
      const make = async (name: string, tools: object[]) =>
        (await member.post("/agents", { name, model, systemPrompt: `You are ${name}.`, tools })).string("agentId");
      clerkId = await make("Archivist", [{ type: "rag_query" }]);
      deskId = await make("Desk", [{ type: "agent", name: "archivist", config: { agentId: clerkId } }]);
    });

    /** The desk says this once its archivist, who searches, has said that. */
    const ask = async (said: { archivist: string; desk: string }, agentId = deskId) => {
      const { member, upstream } = harness;
      upstream.play(({ messages, turn }) => {
        const isArchivist = messages[0]?.content?.includes("Archivist") === true;
        if (turn > 1) return { text: isArchivist ? said.archivist : said.desk };
        const call = { name: "archivist", arguments: { input: "When is the pump bled?" } };
        return isArchivist ? search("pump bled heating season") : { calls: [call] };
      });
      const result = await member.post(`/agents/${agentId}/run`, { input: "When?" });
      expect(result.status, result.text).to.equal(200);
      const log = await member.get(`/agents/${agentId}/runs/${result.string("runId")}`);
      expect(log.at("integrity.verified")).to.equal(true);
      return { result, log };
    };

    it("are inherited where its answer uses that of the other one", async () => {
      const desk = "Our archive says: bleed the pump before each heating season.";
      const { result, log } = await ask({ archivist: answer.text, desk });
      expect(result.at("citations")).to.have.lengthOf(1);
      expect(result.at("citations[0]")).to.deep.include({
        documentId,
        quote: "Bleed the pump before each heating season.",
      });
      expect(log.at("citations")).to.deep.equal(result.at("citations"));
      expect(log.at("steps[0].citations")).to.deep.equal(result.at("citations"));
      const inner = await harness.member.get(`/agents/${clerkId}/runs/${log.string("steps[0].runId")}`);
      expect(inner.at("citations")).to.deep.equal(result.at("citations"));
    });

    it("are inherited over two calls", async () => {
      const { member, model } = harness;
      const tools = [{ type: "agent", name: "archivist", config: { agentId: deskId } }];
      const about = { name: "Door", model, systemPrompt: "You are Door.", tools };
      const doorId = (await member.post("/agents", about)).string("agentId");
      const { result } = await ask({ archivist: answer.text, desk: answer.text }, doorId);
      expect(result.at("citations[0].documentId"), result.text).to.equal(documentId);
    });

    it("are empty where its answer does not use it, or that one found nothing that it used", async () => {
      const unused = await ask({ archivist: answer.text, desk: "Queen Victoria opened Parliament." });
      expect(unused.result.at("citations")).to.deep.equal([]);
      const nothing = await ask({ archivist: "Queen Victoria opened Parliament.", desk: "Parliament was opened." });
      expect(nothing.result.at("citations")).to.deep.equal([]);
    });
  });

  describe("and stands in the place of a model", () => {
    const url = () => `${pages.origin}/winch.md`;
    const text = "It is greased each month at both bearings. Bleed the pump before each heating season.";
    let winchId: string;
    before(async () => {
      const { member, model } = harness;
      pages.put("/winch.md", {
        body: "# Winch\n\nThe winch is greased each month at both bearings.",
        type: "text/markdown",
      });
      winchId = (await member.post("/rag/ingest", { url: url() })).string("documentId");
      await member.post("/agents", {
        name: "Keeper",
        model,
        systemPrompt: "You look.",
        tools: [{ type: "rag_query" }],
      });
      await member.post("/agents", { name: "Mute", model, systemPrompt: "You look.", tools: [] });
    });
    beforeEach(() => {
      harness.upstream.play(({ turn, tools }) =>
        turn === 1 && tools.length > 0
          ? { calls: [...(search("pump bled").calls ?? []), ...(search("winch greased").calls ?? [])] }
          : { text },
      );
    });
    const messages = [{ role: "user", content: "When?" }];
    const model = "agent:Keeper";
    const first = { startIndex: 0, endIndex: "It is greased each month at both bearings.".length };
    const second = { startIndex: first.endIndex + 1, endIndex: text.length };

    it("are in the answer of a chat, each with its place in the text, and in the end of a stream", async () => {
      const { member } = harness;
      const answered = await member.post("/ai/chat", { model, messages });
      expect(answered.at("citations"), answered.text).to.have.lengthOf(2);
      const [winch, pump] = answered.at("citations") as Record<string, unknown>[];
      expect(winch).to.deep.include({ ...first, documentId: winchId, url: url() });
      expect(pump)
        .to.deep.include({ ...second, documentId, heading: "P-100" })
        .and.to.not.have.property("url");
      const { events } = await member.events("POST", "/ai/chat", { body: { model, messages, stream: true } });
      const all = (await Array.fromAsync(events)).map(({ data }) => data);
      expect(valueAt(all.at(-1), "citations")).to.deep.equal([winch, pump]);
      const mute = await member.post("/ai/chat", { model: "agent:Mute", messages });
      expect(mute.body).to.not.have.property("citations");
    });

    it("are annotations of a completion if they have a URL", async () => {
      const { member } = harness;
      const annotation = {
        type: "url_citation",
        url_citation: { start_index: first.startIndex, end_index: first.endIndex, title: "Winch", url: url() },
      };
      const answered = await member.post("/v1/chat/completions", { model, messages });
      expect(answered.at("choices[0].message.annotations"), answered.text).to.deep.equal([annotation]);
      expect(answered.at("citations")).to.have.lengthOf(2);
      const body = { model, messages, stream: true };
      const { events } = await member.events("POST", "/v1/chat/completions", { body });
      const all = (await Array.fromAsync(events)).map(({ data }) => data);
      const deltas = all.flatMap((data) => valueAt(data, "choices[0].delta.annotations") ?? []);
      expect(deltas).to.deep.equal([annotation]);
      const last = all.find((data) => valueAt(data, "choices[0].finish_reason") === "stop");
      expect(valueAt(last, "citations")).to.deep.equal(answered.at("citations"));
    });

    it("are annotations of a response, after what rests on them", async () => {
      const { member } = harness;
      const asked = { model, input: "When?" };
      const answered = await member.post("/v1/responses", asked);
      const message = (answered.at("output") as { type: string; content: unknown }[]).at(-1);
      expect(valueAt(message, "content[0].text")).to.equal(text);
      const annotations = valueAt(message, "content[0].annotations") as Record<string, unknown>[];
      const [winch, pump] = annotations;
      const file = { type: "file_citation", file_id: winchId, document_id: winchId };
      expect(winch).to.deep.include({ ...file, index: first.endIndex });
      expect(pump).to.deep.include({ document_id: documentId, filename: "Pump manual", heading: "P-100" });
      expect(pump).to.deep.include({ index: second.endIndex, quote: "Bleed the pump before each heating season." });
      const kept = await member.get(`/v1/responses/${answered.string("id")}`);
      expect(kept.at("output")).to.deep.equal(answered.at("output"));
      for (const background of [false, true]) {
        const { events } = await member.events("POST", "/v1/responses", {
          body: { ...asked, stream: true, background },
        });
        const all = (await Array.fromAsync(events)).map(({ data }) => data);
        const added = all.filter((data) => valueAt(data, "type") === "response.output_text.annotation.added");
        expect(added.map((data) => valueAt(data, "annotation"))).to.deep.equal(annotations);
      }
    });
  });

  it("are absent where nothing was searched, and empty where nothing was found", async () => {
    const { result, log } = await run([answer], []);
    expect(result.body).to.not.have.property("citations");
    expect(log.body).to.not.have.property("citations");
    const tools = [{ type: "rag_query", config: { collection: "default" } }];
    const { stranger, upstream, model } = harness;
    upstream.play(({ turn }) => (turn === 1 ? search("pump") : answer));
    const agentId = (await stranger.post("/agents", { name: "A", model, systemPrompt: "B.", tools })).string("agentId");
    const none = await stranger.post(`/agents/${agentId}/run`, { input: "Look." });
    expect(none.at("citations"), none.text).to.deep.equal([]);
  });

  it("quote nothing that guards have masked in what the model got", async () => {
    const set = (rules: object) => harness.admin.request("PUT", "/guards", { body: { rules } });
    expect((await set({ email_address: { toolOutput: "mask" } })).status).to.equal(200);
    try {
      const { result, log } = await run([search("loud pump: write to the service"), { text: "Write to service." }]);
      expect(result.text + log.text).to.not.contain("service@example.org");
      const found = log.at("steps[0].citations") as { heading: string; quote?: string }[];
      expect(found.map(({ heading }) => heading)).to.include("Contact");
    } finally {
      await set({});
    }
  });
});
