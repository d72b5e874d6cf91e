import { expect } from "chai";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { linkedPdf, linkedPicture, pdf, pictureOf } from "../support/media.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const picture = pictureOf(64, 48);
const imagePart = (url: string, detail?: string) => ({
  type: "image_url",
  image_url: detail === undefined ? { url } : { url, detail },
});
const filePart = { type: "file", file: { filename: "lease.pdf", file_data: pdf } };
const textPart = { type: "text", text: "What is this?" };
const userWith = (...content: object[]) => ({ role: "user", content });
const call = { id: "call_1", type: "function", function: { name: "look", arguments: "{}" } };

const surfaces = [
  ["/ai/chat", {}],
  ["/v1/chat/completions", { model: "small" }],
] as const;

describe("messages of parts", () => {
  let upstream: FakeProvider;
  let test: TestPlatform;
  let client: ApiClient;
  before(async function () {
    this.timeout(60_000);
    upstream = await startFakeProvider();
    test = await startPlatform({
      env: {
        EDGE_BASE_URL: upstream.url,
        EDGE_MODEL: "small",
        OPENAI_API_KEY: "sk-platform-0123456789abcdef",
        OPENAI_BASE_URL: upstream.url,
        STORE_COMPLETION_CONTENT: "true",
        BATCH_COLLECT_MS: "50",
        BATCH_POLL_MS: "50",
      },
    });
    client = makeClient({ url: test.url, key: test.keys.member });
  });
  beforeEach(() => upstream.reset());
  after(async () => {
    await test.close();
    await upstream.close();
  });

  for (const [path, base] of surfaces) {
    describe(`POST ${path}`, () => {
      const send = (messages: object[], more: object = {}) => client.post(path, { ...base, messages, ...more });
      /** The messages that the provider gets, from the JSON answer and from the stream alike. */
      const sent = async (messages: object[]) => {
        expect((await send(messages)).status).to.equal(200);
        const opened = await client.events("POST", path, { body: { ...base, messages, stream: true } });
        expect((await Array.fromAsync(opened.events)).length).to.be.above(1);
        const [asJson, asStream] = upstream.requests.map(({ body }) => body.messages);
        expect(asStream).to.deep.equal(asJson);
        return asJson;
      };
      const refused = async (messages: object[]) => {
        const response = await send(messages);
        expect([response.status, upstream.requests.length]).to.deep.equal([400, 0]);
        return response.at("error.param");
      };

      it("sends pictures by data and by https URL in their places", async () => {
        const message = userWith(textPart, imagePart(picture), imagePart(linkedPicture, "low"), textPart);
        expect(await sent([message])).to.deep.equal([message]);
      });

      it("sends texts alone as one string", async () => {
        const system = { role: "system", content: [textPart] };
        expect(await sent([system, userWith({ type: "text", text: "What is" }, textPart)])).to.deep.equal([
          { role: "system", content: "What is this?" },
          { role: "user", content: "What is\nWhat is this?" },
        ]);
      });

      it("sends the pictures of tools' results in a user's message after the last result", async () => {
        const calls = { role: "assistant", tool_calls: [call, { ...call, id: "call_2" }] };
        const results = [
          { role: "tool", tool_call_id: "call_1", content: [{ type: "text", text: "a chart" }, imagePart(picture)] },
          { role: "tool", tool_call_id: "call_2", content: [imagePart(linkedPicture)] },
        ];
        const messages = [userWith(textPart), calls, ...results];
        expect((await sent([...messages, userWith(textPart)]))?.slice(2)).to.deep.equal([
          { role: "tool", tool_call_id: "call_1", content: "a chart" },
          { role: "tool", tool_call_id: "call_2", content: "The result is in the next message of the user." },
          {
            role: "user",
            content: [
              { type: "text", text: "From the result of call_1:" },
              imagePart(picture),
              { type: "text", text: "From the result of call_2:" },
              imagePart(linkedPicture),
            ],
          },
          { role: "user", content: "What is this?" },
        ]);
        upstream.reset();
        expect((await sent(messages))?.map((message) => (message as { role: string }).role)).to.deep.equal([
          ...["user", "assistant", "tool", "tool", "user"],
        ]);
      });

      it("refuses what is no picture and no file of these, and names the part", async () => {
        const url = "messages[1].content[1].image_url.url";
        const refusedUrl = (part: object) => refused([userWith(textPart), userWith(textPart, part)]);
        expect(await refusedUrl(imagePart("http://example.com/a.png"))).to.equal(url);
        expect(await refusedUrl(imagePart("file:///etc/passwd"))).to.equal(url);
        expect(await refusedUrl(imagePart("https://"))).to.equal(url);
        expect(await refusedUrl(imagePart(`https://example.com/${"a".repeat(8_200)}`))).to.equal(url);
        expect(await refusedUrl(imagePart("data:image/svg+xml;base64,PHN2Zy8+"))).to.equal(url);
        expect(await refusedUrl(imagePart("data:image/png;base64,"))).to.equal(url);
        expect(await refusedUrl(imagePart("data:image/png;base64,no base64"))).to.equal(url);
        expect(await refusedUrl(imagePart(pdf))).to.equal(url);
        expect(await refusedUrl(imagePart(picture, "huge"))).to.equal("messages[1].content[1].image_url.detail");
        const file = "messages[1].content[1].file";
        expect(await refusedUrl({ type: "file", file: { file_data: picture } })).to.equal(`${file}.file_data`);
        expect(await refusedUrl({ type: "file", file: { file_url: pdf } })).to.equal(`${file}.file_url`);
        expect(await refusedUrl({ type: "file", file: { file_id: "file_1" } })).to.equal(file);
        expect(await refusedUrl({ type: "file", file: { file_data: pdf, file_url: linkedPdf } })).to.equal(file);
        expect(await refusedUrl({ type: "input_audio", input_audio: {} })).to.equal("messages[1].content[1].type");
        expect(await refused([{ role: "assistant", content: [imagePart(picture)] }])).to.match(
          /^messages\[0\]\.content/,
        );
        expect(await refused([{ role: "system", content: [filePart] }])).to.match(/^messages\[0\]\.content/);
      });

      it("refuses more parts of a message, and more pictures of a request, than it takes", async () => {
        const few = Array.from({ length: 50 }, () => imagePart(picture));
        expect((await send([userWith(...few), userWith(...few)])).status).to.equal(200);
        upstream.reset();
        expect(await refused([userWith(...few), userWith(...few, textPart, filePart)])).to.equal("messages[1].content");
        expect(await refused([userWith(...Array.from({ length: 1_001 }, () => textPart))])).to.equal(
          "messages[0].content",
        );
      });

      it("sends a PDF by its data, and one by its URL to the API that reads it", async () => {
        const ask = (file: object) => send([userWith(textPart, { type: "file", file })], { model: "gpt-4.1" });
        expect((await ask(filePart.file)).status).to.equal(200);
        for (const file of [{ file_url: linkedPdf }, { file_data: linkedPdf }])
          expect((await ask(file)).status).to.equal(200);
        const [asData, ...asUrl] = upstream.requests;
        expect([asData?.path, asData?.body.messages]).to.deep.equal([
          "/v1/chat/completions",
          [userWith(textPart, filePart)],
        ]);
        const content = [
          { type: "input_text", text: textPart.text },
          { type: "input_file", file_url: linkedPdf },
        ];
        for (const { path: asked, body } of asUrl)
          expect([asked, body.input]).to.deep.equal(["/v1/responses", [{ role: "user", content }]]);
      });

      it("names the part that a model cannot read", async () => {
        const response = await send([userWith(textPart), userWith(textPart, filePart)]);
        expect([response.status, response.at("error.param")]).to.deep.equal([400, "messages[1].content[1]"]);
        expect(upstream.requests).to.have.lengthOf(0);
      });

      it("takes reasoning back, and sends none of another provider's on", async () => {
        const item = { type: "thinking", thinking: "A lease…", signature: "c2lnbmF0dXJl" };
        const details = [{ type: "reasoning", provider: "anthropic", index: 0, item }];
        const turn = { role: "assistant", content: "A lease.", reasoning_details: details };
        expect(await sent([userWith(textPart), turn, userWith(textPart)])).to.deep.equal([
          { role: "user", content: "What is this?" },
          { role: "assistant", content: "A lease." },
          { role: "user", content: "What is this?" },
        ]);
        upstream.reset();
        const wrong = async (detail: object) => {
          const param = await refused([{ ...turn, reasoning_details: [{ ...details[0], ...detail }] }]);
          expect(param).to.match(/^messages\[0\]\.reasoning_details\[0\]\./);
        };
        await wrong({ item: { type: "image", source: { type: "url", url: linkedPicture } } });
        await wrong({ item: { ...item, signature: "x".repeat(1 << 20) } });
        await wrong({ index: -1 });
        await wrong({ provider: "" });
        const many = Array.from({ length: 201 }, () => details[0]);
        expect(await refused([{ ...turn, reasoning_details: many }])).to.equal("messages[0].reasoning_details");
      });
    });
  }

  it("keeps answers to different pictures apart", async () => {
    const options = { headers: { "x-svc-options": "cache=true" } };
    const cachedOf = async (...messages: object[]) =>
      (await client.post("/ai/chat", { messages }, options)).at("cached");
    const other = pictureOf(64, 48, 1);
    expect(other.length).to.equal(picture.length);
    expect(await cachedOf(userWith(textPart, imagePart(picture)))).to.equal(false);
    expect(await cachedOf(userWith(textPart, imagePart(other)))).to.equal(false);
    expect(await cachedOf(userWith(textPart, imagePart(picture, "low")))).to.equal(false);
    expect(await cachedOf(userWith(textPart, imagePart(picture)))).to.equal(true);
  });

  it("compresses the texts around a picture, and not its message", async () => {
    const sentence = (n: number) =>
      `The harbour was calm and the boats moved slowly along the old quay on evening ${"i".repeat(n)}. `;
    const long = Array.from({ length: 60 }, (_, n) => sentence(n)).join("");
    const withPicture = userWith({ type: "text", text: long }, imagePart(picture));
    const messages = [withPicture, { role: "user", content: long }, userWith(textPart)];
    const headers = { "x-svc-options": "compress=true", "x-svc-debug": "true" };
    const response = await client.post("/ai/chat", { messages }, { headers });
    expect(response.at("_preprocessing.compression.ratio")).to.be.below(1);
    const [kept, shortened] = upstream.requests[0]?.body.messages ?? [];
    expect(kept).to.deep.equal(withPicture);
    expect(JSON.stringify(shortened).length).to.be.below(long.length);
  });

  it("keeps the texts alone in a call's record", async () => {
    const chat = await client.post("/ai/chat", { messages: [userWith(textPart, imagePart(picture), textPart)] });
    await test.platform.gateway.flush();
    const log = await client.get(`/ai/logs/${chat.string("logId")}`);
    expect(log.at("content.messages")).to.deep.equal([{ role: "user", content: "What is this?\nWhat is this?" }]);
    expect(log.text).not.to.contain("base64");
  });

  it("sends the pictures of chats that wait for a batch, and of files of batches", async () => {
    const message = userWith(textPart, imagePart(picture));
    const accepted = await client.post("/ai/chat", { messages: [message], prefer_async: true });
    expect(accepted.status).to.equal(202);
    const statusOf = (path: string, at: string) => async () => {
      const seen = await client.get(path);
      return ["completed", "failed"].includes(seen.string(at)) ? seen : null;
    };
    const job = await pollUntil(statusOf(accepted.string("statusUrl"), "status"));
    expect([job.at("status"), upstream.requests[0]?.body.messages]).to.deep.equal(["completed", [message]]);
    const line = (id: string, ...content: object[]) =>
      JSON.stringify({
        custom_id: id,
        method: "POST",
        url: "/v1/chat/completions",
        body: { model: "small", messages: [userWith(...content)] },
      });
    const form = new FormData();
    form.set("purpose", "batch");
    const bad = [line("bad", imagePart("ftp://a.example/b.png")), line("worse", filePart)];
    const lines = [line("good", textPart, imagePart(linkedPicture)), ...bad];
    form.set("file", new Blob([lines.join("\n")]), "requests.jsonl");
    const file = (await client.request("POST", "/v1/files", { raw: form })).string("id");
    const body = { input_file_id: file, endpoint: "/v1/chat/completions", completion_window: "24h" };
    const path = `/v1/batches/${(await client.post("/v1/batches", body)).string("id")}`;
    const batch = await pollUntil(statusOf(path, "status"));
    expect(batch.at("request_counts")).to.deep.equal({ total: 3, completed: 1, failed: 2 });
    expect(upstream.requests[1]?.body.messages).to.deep.equal([userWith(textPart, imagePart(linkedPicture))]);
    const errors = await fetch(`${test.url}/v1/files/${batch.string("error_file_id")}/content`, {
      headers: { authorization: `Bearer ${test.keys.member}` },
    });
    expect(await errors.text())
      .to.contain("messages.0.content.0.image_url.url")
      .and.to.contain("small takes no files");
  });

  it("takes texts alone from a widget key", async () => {
    const admin = makeClient({ url: test.url, key: test.keys.admin });
    const visitor = makeClient({ url: test.url, key: (await admin.post("/ai/widget/key", {})).string("key") });
    const chat = (...content: object[]) => visitor.post("/ai/chat", { messages: [userWith(...content)] });
    expect((await chat(textPart)).status).to.equal(200);
    const response = await chat(textPart, imagePart(picture));
    expect([response.status, response.at("error.param")]).to.deep.equal([400, "messages[0].content[1]"]);
  });
});
