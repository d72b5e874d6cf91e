import Anthropic from "@anthropic-ai/sdk";
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import { expect } from "chai";
import OpenAI from "openai";
import { z } from "zod";
import {
  offline,
  question,
  reported,
  startWeatherPlatform,
  type WeatherPlatform,
  weatherModels,
} from "../support/weather-models.ts";

describe("the official clients' own helpers with their defaults", function () {
  this.timeout(60_000);
  let platform: WeatherPlatform;
  let openai: OpenAI;
  let anthropic: Anthropic;
  before(async () => {
    platform = await startWeatherPlatform();
    const { url, keys } = platform.test;
    openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: keys.member });
    anthropic = new Anthropic({ baseURL: url, apiKey: keys.member });
  });
  after(() => platform?.close());

  const asked = { role: "user" as const, content: question };
  const parameters = { type: "object", properties: { town: { type: "string" } }, required: ["town"] };
  const weather = betaZodTool({
    name: "weather",
    description: "The weather of a town",
    inputSchema: z.object({ town: z.string() }),
    run: () => reported,
  });
  const textOf = ({ content }: Pick<Anthropic.Beta.BetaMessage, "content">) =>
    content.map((block) => (block.type === "text" ? block.text : "")).join("");

  for (const [kind, model] of Object.entries(weatherModels)) {
    it(`run tools by openai's chat completions, as JSON and as a stream, on ${kind}`, async () => {
      const tool = {
        type: "function" as const,
        function: {
          name: "weather",
          description: "The weather of a town",
          parameters,
          parse: JSON.parse,
          function: () => reported,
        },
      };
      const about = { model, messages: [asked], tools: [tool] };
      expect(await openai.chat.completions.runTools(about).finalContent()).to.include("7431");
      const runner = openai.chat.completions.runTools({ ...about, stream: true });
      let streamed = "";
      runner.on("content", (delta) => {
        streamed += delta;
      });
      expect(await runner.finalContent()).to.include("7431");
      expect(streamed).to.include("7431");
    });

    it(`answer openai's responses the same as JSON and as a stream, on ${kind}`, async () => {
      const runner = openai.responses.stream({ model, input: question });
      const [response, answered] = [
        await runner.finalResponse(),
        await openai.responses.create({ model, input: question }),
      ];
      expect(response.output_text).to.equal(answered.output_text);
      expect(response.output_text).not.to.equal("");
    });

    it(`run tools by anthropic's tool runner, as JSON and as a stream, on ${kind}`, async () => {
      const about = { model, max_tokens: 2_000, messages: [asked], tools: [weather] };
      expect(textOf(await anthropic.beta.messages.toolRunner(about))).to.include("7431");
      const texts: string[] = [];
      for await (const stream of anthropic.beta.messages.toolRunner({ ...about, stream: true }))
        texts.push(textOf(await stream.finalMessage()));
      expect(texts.at(-1)).to.include("7431");
    });

    it(`keep anthropic's threads, or are told that there are none, on ${kind}`, async () => {
      const about = { model, max_tokens: 2_000 };
      const isClaude = model === weatherModels["Anthropic's wire"];
      const refused = await anthropic.beta.messages
        .thread(about)
        .send(asked)
        .then(
          () => undefined,
          (error: unknown) => error,
        );
      if (isClaude) expect(refused).to.equal(undefined);
      else {
        expect(refused).to.be.instanceOf(Anthropic.BadRequestError);
        expect(refused).to.have.nested.property("error.error.details.error_code", "thread_unsupported_request");
      }
      const thread = anthropic.beta.messages.thread({ ...about, unsupportedRequestBehavior: "continue_unthreaded" });
      expect(textOf(await thread.send(asked))).not.to.equal("");
      const last = textOf(await thread.send({ role: "user", content: `Which town? ${reported}` }));
      expect(last).to.include(model === offline ? "Graz" : "7431");
      if (model === offline) return;
      const said = JSON.stringify(platform.upstream.requests.at(-1)?.body);
      expect(said.includes(question)).to.equal(!isClaude); // Claude holds the conversation itself
    });
  }
});
