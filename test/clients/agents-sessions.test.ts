import {
  Agent,
  MemorySession,
  OpenAIConversationsSession,
  OpenAIProvider,
  OpenAIResponsesCompactionSession,
  Runner,
  tool,
} from "@openai/agents";
import { expect } from "chai";
import OpenAI from "openai";
import { z } from "zod";
import type { Behaviour } from "../support/fake-provider/behaviour.ts";
import type { WireRequest } from "../support/fake-provider/wire-format.ts";
import {
  question,
  reported,
  startWeatherPlatform,
  type WeatherPlatform,
  weatherModels,
} from "../support/weather-models.ts";

const summary = "They spoke of rain of strength 7431 in Graz.";

/** A model that calls the tool once, repeats what that returned, and summarises. */
function play(body: WireRequest): Behaviour {
  const text = JSON.stringify(body);
  if (text.includes("replaced by your summary")) return { pieces: [summary] };
  if (text.includes("7431")) return { pieces: ["It says: ", reported] };
  return { reasoning: "A tool knows.", toolCalls: [{ id: "call_1", name: "weather", arguments: '{"town":"Graz"}' }] };
}

describe("sessions of @openai/agents", function () {
  this.timeout(60_000);
  let started: WeatherPlatform;
  let upstream: WeatherPlatform["upstream"];
  let test: WeatherPlatform["test"];
  let client: OpenAI;
  before(async () => {
    started = await startWeatherPlatform();
    ({ upstream, test } = started);
    client = new OpenAI({ baseURL: `${test.url}/v1`, apiKey: test.keys.member, maxRetries: 0 });
  });
  beforeEach(() => {
    upstream.reset();
    upstream.setDefault(play);
  });
  after(() => started?.close());

  const weather = tool({
    name: "weather",
    description: "The weather of a town",
    parameters: z.object({ town: z.string() }),
    execute: async () => reported,
  });
  const runner = () =>
    new Runner({ modelProvider: new OpenAIProvider({ openAIClient: client }), tracingDisabled: true });
  const sent = () => JSON.stringify(upstream.requests.at(-1)?.body);

  for (const [kind, model] of Object.entries(weatherModels)) {
    const agent = new Agent({ name: "Weather agent", instructions: "Ask the tool.", model, tools: [weather] });

    it(`keep a conversation on the server, on ${kind}`, async () => {
      const session = new OpenAIConversationsSession({ client });
      const { finalOutput = "" } = await runner().run(agent, question, { session });
      expect(finalOutput).to.include("7431");
      const id = await session.getSessionId();
      expect(await client.conversations.retrieve(id)).to.include({ id, object: "conversation" });
      await runner().run(agent, "And how strong was it?", { session });
      if (model !== "switchyard-offline")
        for (const said of [question, "7431", "And how strong was it?"]) expect(sent()).to.include(said);
      const items = await session.getItems();
      const types = items.map(({ type }) => type).filter((type) => type !== "reasoning");
      expect(types).to.deep.equal([
        "message",
        "function_call",
        "function_call_result",
        "message",
        "message",
        "message",
      ]);
      expect(await session.getItems(1)).to.deep.equal(items.slice(-1));
      expect(await session.popItem()).to.deep.equal(items.at(-1));
      expect(await session.getItems()).to.deep.equal(items.slice(0, -1));
      await session.clearSession();
      const gone = await client.conversations.retrieve(id).catch((error: unknown) => error);
      expect(gone).to.be.instanceOf(OpenAI.NotFoundError);
    });

    it(`continue a conversation by its id, on ${kind}`, async () => {
      const { id: conversationId } = await client.conversations.create({});
      await runner().run(agent, question, { conversationId });
      await runner().run(agent, "And how strong was it?", { conversationId });
      if (model !== "switchyard-offline")
        for (const said of [question, "7431", "And how strong was it?"]) expect(sent()).to.include(said);
      const kept = await Array.fromAsync(client.conversations.items.list(conversationId, { order: "asc" }));
      const types = kept.map(({ type }) => type).filter((type) => type !== "reasoning");
      const first = ["message", "function_call", "function_call_output", "message"];
      expect(types).to.deep.equal([...first, "message", "message"]);
    });

    for (const compactionMode of ["previous_response_id", "input"] as const)
      it(`are compacted by ${compactionMode}, on ${kind}`, async () => {
        const session = new OpenAIResponsesCompactionSession({
          client,
          model: "gpt-6-luna",
          underlyingSession: new MemorySession(),
          compactionMode,
          shouldTriggerCompaction: ({ compactionCandidateItems }) => compactionCandidateItems.length > 2,
        });
        await runner().run(agent, question, { session });
        const items = await session.getItems();
        expect(items.map(({ type }) => type)).to.deep.equal(["message", "compaction"]);
        const { finalOutput = "" } = await runner().run(agent, "And how strong was it?", { session });
        expect(finalOutput).not.to.equal("");
        if (model === "switchyard-offline") return;
        expect(sent()).to.include(summary);
        expect(sent()).not.to.include("call_1");
      });
  }
});
