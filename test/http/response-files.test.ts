import { expect } from "chai";
import OpenAI, { toFile } from "openai";
import { pdf, pictureOf } from "../support/media.ts";
import { type ProviderPlatform, startProviderPlatform } from "../support/provider-platform.ts";

const model = "gpt-4.1";
const bytesOf = (url: string) => Buffer.from(url.slice(url.indexOf(",") + 1), "base64");

describe("files of a response's input by their ids", () => {
  let harness: ProviderPlatform;
  let openai: OpenAI;
  let stranger: OpenAI;
  before(async () => {
    harness = await startProviderPlatform(({ url }) => ({
      OPENAI_API_KEY: "sk-platform-0123456789abcdef",
      OPENAI_BASE_URL: url,
      MAX_JSON_BYTES: "100000",
    }));
    const { url, keys } = harness.test;
    const clientOf = (apiKey: string) => new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });
    [openai, stranger] = [clientOf(keys.member), clientOf(keys.stranger)];
  });
  beforeEach(() => harness.upstream.reset());
  after(() => harness.close());

  const upload = async (name: string, bytes: Buffer, client = openai) =>
    (await client.files.create({ file: await toFile(bytes, name), purpose: "user_data" })).id;
  const filePart = (file_id: string) => ({ type: "input_file" as const, file_id });
  const imagePart = (file_id: string) => ({ type: "input_image" as const, file_id, detail: "low" as const });
  const ask = (content: OpenAI.Responses.ResponseInputContent[], more: object = {}) =>
    openai.responses.create({ model, input: [{ role: "user", content }], ...more });
  /** The user's message as OpenAI's Chat Completions gets it. */
  const sent = (call = 0) => Object(harness.upstream.requests[call]?.body).messages.at(-1).content;
  const refused = async (answer: Promise<unknown>) => {
    const error = await answer.then(
      () => null,
      (thrown: unknown) => thrown,
    );
    if (!(error instanceof OpenAI.APIError)) throw new Error("the call was not refused", { cause: error });
    return [error.status, error.code, error.param];
  };
  const param = "input[0].content[0].file_id";

  it("reach the model as if they had been sent, and stay in a stored conversation", async () => {
    const picture = pictureOf(8, 8);
    const image = await upload("quay.png", bytesOf(picture));
    const terms = await upload("terms.pdf", bytesOf(pdf));
    const notes = await upload("notes.md", Buffer.from("# Müll\nOn Mondays."));
    const response = await ask([
      { type: "input_text", text: "What is this?" },
      imagePart(image),
      filePart(terms),
      filePart(notes),
    ]);
    const content = [
      { type: "text", text: "What is this?" },
      { type: "image_url", image_url: { url: picture, detail: "low" } },
      { type: "file", file: { filename: "terms.pdf", file_data: pdf } },
      { type: "text", text: "notes.md:\n\n# Müll\nOn Mondays." },
    ];
    expect(sent()).to.deep.equal(content);
    for (const id of [image, terms, notes]) await openai.files.delete(id);
    await openai.responses.create({ model, input: "And then?", previous_response_id: response.id });
    const [first] = Object(harness.upstream.requests[1]?.body).messages;
    expect(first.content, "after the files were deleted").to.deep.equal(content);
  });

  it("are refused when they are unknown, of another tenant or of another kind, before a model is asked", async () => {
    const image = await upload("quay.png", bytesOf(pictureOf(8, 8)));
    const notes = await upload("notes.md", Buffer.from("On Mondays."));
    const binary = await upload("data.bin", Buffer.from([0xff, 0xfe, 0, 1]));
    const foreign = await upload("notes.md", Buffer.from("A secret."), stranger);
    await openai.files.delete(notes);
    const missing = [404, "not_found", param];
    expect(await refused(ask([filePart(notes)])), "deleted").to.deep.equal(missing);
    expect(await refused(ask([filePart(foreign)])), "another tenant's").to.deep.equal(missing);
    expect(await refused(ask([imagePart(binary)]))).to.deep.equal([400, "invalid_request", param]);
    expect(await refused(ask([filePart(image)]))).to.deep.equal([400, "invalid_request", param]);
    expect(await refused(ask([filePart(binary)]))).to.deep.equal([400, "invalid_request", param]);
    const both = { ...filePart(image), file_data: pdf };
    expect((await refused(ask([both])))[0], "an id and data").to.equal(400);
    expect(harness.upstream.requests).to.deep.equal([]);
  });

  it("come past no guard of a regulated profile", async () => {
    const notes = await upload("notes.md", Buffer.from("The patient's SSN is 219-47-8831."));
    const tools = [{ type: "composite", config: { pattern: "critique", profile: "healthcare" } }];
    const agent = { name: "Nurse", model, systemPrompt: "You help.", tools };
    expect((await harness.client.post("/agents", agent)).status).to.equal(201);
    const harmless = await upload("notes.md", Buffer.from("The quay is closed."));
    const passed = await ask([filePart(harmless)], { model: "agent:Nurse" });
    expect(passed.status).to.equal("completed");
    expect(JSON.stringify(harness.upstream.requests[0]?.body)).to.include("The quay is closed.");
    harness.upstream.reset();
    const blocked = await refused(ask([filePart(notes)], { model: "agent:Nurse" }));
    expect(blocked.slice(0, 2)).to.deep.equal([422, "compliance_blocked"]);
    const composite = await refused(ask([filePart(notes)], { model: "composite:critique:healthcare" }));
    expect(composite.slice(0, 2), "takes texts alone").to.deep.equal([422, "compliance_blocked"]);
    expect(harness.upstream.requests).to.deep.equal([]);
  });

  it("have together what a body may have", async () => {
    const large = await upload("notes.txt", Buffer.from("x".repeat(40_000)));
    await ask([filePart(large)]);
    const answer = await refused(ask([filePart(large), filePart(large)]));
    expect(answer).to.deep.equal([413, "request_too_large", "input[0].content[1].file_id"]);
    expect(harness.upstream.requests).to.have.lengthOf(1);
  });
});
