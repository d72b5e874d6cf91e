import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { guardInput } from "../../src/composite/guard-input.ts";
import { AppError } from "../../src/lib/errors.ts";
import { type ApiClient, type ApiResponse, makeClient } from "../support/http-client.ts";
import { pdf, pictureOf } from "../support/media.ts";
import { type HostProcess, startProcess } from "../support/processes.ts";
import { type ScriptedUpstream, startScriptedUpstream } from "../support/scripted-upstream.ts";
import { skipTest } from "../support/skip-test.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

/** What must be found nowhere, in the forms in which it could be kept. */
const secrets = [
  "219-47-8831",
  "219478831",
  "219%2D47%2D8831",
  "AB-77412290",
  "03/12/1985",
  "4242424242424242",
  "4242 4242 4242 4242",
  "1234-5678-9012-3456",
];
const blocked: [string, string, string][] = [
  ["healthcare", "The SSN of the patient is 219-47-8831, what now?", "ssn"],
  ["healthcare", "Whose number is 219%2D47%2D8831?", "ssn"],
  ["healthcare", "Patient John Doe, DoB: 03/12/1985, has chest pain.", "date_of_birth"],
  ["healthcare", "Look up MRN AB-77412290 for me", "medical_record_number"],
  ["financial", "Charge 4242424242424242 again", "card_number"],
  ["financial", "Charge 4242 4242 4242 4242 again", "card_number"],
  ["financial", "My card number is 1234-5678-9012-3456", "card_number"],
];

describe("an input that a regulated profile does not take", function () {
  this.timeout(60_000);
  let upstream: ScriptedUpstream;
  let test: TestPlatform;
  let client: ApiClient;
  let member: ApiClient;
  let log = "";
  const hosts: HostProcess[] = [];
  before(async () => {
    upstream = await startScriptedUpstream();
    test = await startPlatform({
      services: "private",
      workers: false,
      env: { EDGE_BASE_URL: upstream.url, EDGE_MODEL: "scripted", LOG_LEVEL: "silent" },
    });
    const env = { ...test.env, LOG_LEVEL: "trace" };
    const write = (text: string) => {
      log += text;
    };
    hosts.push(await startProcess("api/server.ts", env, write), await startProcess("workers/main.ts", env, write));
    client = makeClient({ url: String(hosts[0]?.ready.url), key: test.keys.member });
    member = makeClient({ url: test.url, key: test.keys.member });
  });
  after(async () => {
    await Promise.all(hosts.map((host) => host.kill()));
    await test.close();
    await upstream.close();
  });

  const body = (profile: string, input: string) => ({ pattern: "critique", profile, input });
  const answers: ApiResponse[] = [];
  const send = async (profile: string, input: string, headers: Record<string, string> = {}) => {
    const answer = await client.post("/composite/execute", body(profile, input), { headers });
    answers.push(answer);
    return answer;
  };
  /** Every byte that the store and Redis keep on disk; only where they are ours. */
  const kept = async () => {
    const folder = test.env.DATA_DIR ?? "";
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
    return (await Promise.all(files.map((file) => readFile(file, "latin1").catch(() => "")))).join("\n");
  };

  for (const [profile, input, kind] of blocked) {
    it(`${profile}: is refused with the kind and the place of ${JSON.stringify(kind)}, and nothing of the value`, async () => {
      const calls = upstream.calls.length;
      const ways = [{}, { prefer: "respond-async" }, { "idempotency-key": `guard-${profile}-${kind}` }];
      for (const headers of ways) {
        const answer = await send(profile, input, headers);
        expect([answer.status, answer.at("error.code"), answer.at("error.type")]).to.deep.equal([
          422,
          "compliance_blocked",
          "compliance_error",
        ]);
        expect(answer.at("error.param")).to.equal("input");
        expect(answer.at("error.details.kinds")).to.deep.equal([kind]);
        const [start, end] = [answer.at("error.details.findings[0].start"), answer.at("error.details.findings[0].end")];
        expect(secrets).to.include(input.slice(Number(start), Number(end)));
      }
      expect(upstream.calls).to.have.length(calls);
    });
  }

  const user = (content: string) => ({ role: "user", content });
  /** The ways in which a text comes in a chat, with the field that it is in. */
  const chats: [name: string, path: string, body: (text: string) => object, field: string][] = [
    ["a chat", "/v1/chat/completions", (content) => ({ messages: [user(content)] }), "messages[0].content"],
    [
      "the system message of a streamed chat",
      "/v1/chat/completions",
      (content) => ({
        stream: true,
        messages: [
          { role: "system", content },
          { role: "user", content: "Why?" },
        ],
      }),
      "messages[0].content",
    ],
    [
      "an earlier turn of a chat",
      "/v1/chat/completions",
      (content) => ({
        messages: [
          { role: "user", content: "Who?" },
          { role: "assistant", content },
          { role: "user", content: [{ type: "text", text: "Why?" }] },
        ],
      }),
      "messages[1].content",
    ],
    [
      "the prompt of /ai/chat",
      "/ai/chat",
      (systemPrompt) => ({ systemPrompt, messages: [user("Why?")] }),
      "systemPrompt",
    ],
    ["the input of a response", "/v1/responses", (input) => ({ input }), "input[0].content"],
    [
      "the instructions of a streamed response",
      "/v1/responses",
      (instructions) => ({ instructions, input: "Why?", stream: true }),
      "instructions",
    ],
  ];
  for (const [name, path, toBody, field] of chats) {
    it(`is refused in ${name}, before anything of it is kept`, async () => {
      const calls = upstream.calls.length;
      for (const [profile, input, kind] of blocked) {
        for (const headers of [{}, { "idempotency-key": `chat-${name}-${profile}-${kind}` }]) {
          const model = `composite:critique:${profile}`;
          const answer = await client.post(path, { model, ...toBody(input) }, { headers });
          answers.push(answer);
          expect([answer.status, answer.at("error.code")], answer.text).to.deep.equal([422, "compliance_blocked"]);
          expect([answer.at("error.param"), answer.at("error.details.findings[0].field")]).to.deep.equal([
            field,
            field,
          ]);
          expect(answer.at("error.details.kinds")).to.deep.equal([kind]);
        }
      }
      expect(upstream.calls).to.have.length(calls);
    });
  }

  it("is refused for an agent whose tool has the profile, before a response in the background is recorded", async () => {
    for (const [profile, input] of blocked) {
      const tools = [{ type: "composite", config: { pattern: "critique", profile } }];
      const about = { name: "Desk", model: "scripted", systemPrompt: "You help.", tools };
      const model = `agent:${(await client.post("/agents", about)).string("agentId")}`;
      for (const background of [false, true]) {
        const answer = await client.post("/v1/responses", { model, input, background });
        answers.push(answer);
        expect([answer.status, answer.at("error.code")], answer.text).to.deep.equal([422, "compliance_blocked"]);
      }
    }
  });

  it("is refused even if it is split over two messages", async () => {
    const messages = ["The patient's date of birth:", "03/12/1985"].map((content) => ({ role: "user", content }));
    const answer = await client.post("/v1/chat/completions", { model: "composite:critique:healthcare", messages });
    answers.push(answer);
    expect([answer.status, answer.at("error.param")], answer.text).to.deep.equal([422, "messages"]);
  });

  for (const [kind, part] of Object.entries({
    pictures: { type: "image_url", image_url: { url: pictureOf(40, 40) } },
    files: { type: "file", file: { file_data: pdf } },
  })) {
    it(`may be in ${kind}: they are refused, too`, async () => {
      const messages = [{ role: "user", content: [{ type: "text", text: "What is it?" }, part] }];
      const answer = await client.post("/v1/chat/completions", { model: "composite:debate:financial", messages });
      expect([answer.status, answer.at("error.code")], answer.text).to.deep.equal([422, "compliance_blocked"]);
      expect(answer.at("error.param")).to.equal("messages[0].content[1]");
      const other = await client.post("/v1/chat/completions", { model: "composite:debate:coding", messages });
      expect([other.status, other.at("error.code")]).to.deep.equal([400, "invalid_request"]);
      expect(other.string("error.message")).to.equal(
        `messages[0].content[1]: a composite takes no ${kind}, but texts alone.`,
      );
    });
  }

  it("is refused in the name of a model too", async () => {
    const models = ["scripted", "219-47-8831"];
    const answer = await client.post("/composite/execute", { ...body("healthcare", "Is it safe?"), models });
    answers.push(answer);
    expect([answer.status, answer.at("error.param")]).to.deep.equal([422, "models[1]"]);
  });

  it("is refused in the address of a callback, of which nothing is noted", async () => {
    const callback = { url: "https://example.com/219-47-8831" };
    const answer = await client.post("/composite/execute", { ...body("healthcare", "Is it safe?"), callback });
    answers.push(answer);
    expect([answer.status, answer.at("error.param")]).to.deep.equal([422, "callback.url"]);
    expect(await test.platform.store.callbacks.due(new Date(Date.now() + 60_000), 10, [])).to.deep.equal([]);
  });

  it("is refused by the domain function itself, for every caller", async () => {
    const { composite } = test.platform;
    const caller = await test.platform.tenancy.authenticate(test.keys.member);
    if (caller === null) throw new Error("the key is not known");
    for (const [profile, input] of blocked) {
      const body = { pattern: "critique", profile, input } as Parameters<typeof composite.accept>[0]["body"]; // from the table above
      const refusal = await composite.accept({ caller, body, isInteractive: true }).then(
        () => undefined,
        (error: unknown) => error,
      );
      expect(refusal).to.be.instanceOf(AppError).and.to.include({ code: "compliance_blocked" });
    }
  });

  it("leaves nothing behind: no job, run, call record, log line or body", async function () {
    const jobs = await member.get("/jobs?kind=composite");
    expect(jobs.at("data")).to.deep.equal([]);
    for (const answer of answers) for (const secret of secrets) expect(answer.text).not.to.include(secret);
    expect(log).to.include("/composite/execute").and.to.include("compliance_blocked");
    for (const secret of secrets) expect(log, "the log").not.to.include(secret);
    if (process.env.MONGODB_URL || process.env.REDIS_URL)
      return skipTest(this, "only the files of embedded services can be read");
    // What is looked for would be found: an input that passes is.
    const clean = await send("coding", "Is 8831-marker a good name for a cache?", { prefer: "respond-async" });
    expect(clean.status).to.equal(202);
    const bytes = await kept();
    expect(bytes).to.include("8831-marker");
    expect(bytes).to.include(clean.string("executionId"));
    for (const secret of secrets) expect(bytes, "the data folder").not.to.include(secret);
    expect(upstream.calls.map(({ user }) => user).join("\n")).not.to.match(/219-47|AB-774|4242/);
  });

  it("is accepted by a profile without such rules", async () => {
    const answer = await send("support", "Order 12, ask for 555-0100");
    expect(answer.status).to.equal(200);
  });

  it("is refused with 503 when the guard itself fails, without details of the failure", () => {
    const failing = () => {
      throw new Error("cannot read 219-47-8831");
    };
    const run = () => guardInput({ profile: "healthcare", input: "219-47-8831" }, failing);
    const refusal = expect(run).to.throw(AppError);
    refusal.that.includes({ code: "unavailable", retryable: true });
    refusal.that.satisfies((error: AppError) => error.cause === undefined && !error.message.includes("219"));
    expect(() => guardInput({ profile: "coding", input: "219-47-8831" }, failing)).not.to.throw();
  });
});
