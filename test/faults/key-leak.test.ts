import { Writable } from "node:stream";
import { expect } from "chai";
import { serveApi } from "../../api/server.ts";
import { loadConfig } from "../../src/config/config.ts";
import { type Logger, makeLogger } from "../../src/observe/logger.ts";
import { openPlatform } from "../../src/platform.ts";
import { startWorkers } from "../../workers/start-workers.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { pollUntil } from "../support/poll-until.ts";
import { readPlaces, rejectSecrets, secretsIn } from "../support/secret-scan.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

/** Secrets that nobody but their owner and their provider may ever see. */
const secrets = {
  openai: "sk-LeakMarkerOne0123456789abcdefgh",
  rotated: "sk-LeakMarkerTwo0123456789abcdefgh",
  anthropic: "sk-ant-LeakMarkerThree0123456789abcd",
  platform: "sk-LeakMarkerFour0123456789abcdefg",
  custom: "sk-LeakMarkerFive0123456789abcdefg",
};

/** Each secret as it is, and in the forms in which it could hide. */
const forms = Object.entries(secrets).flatMap(([name, secret]) => {
  const bytes = Buffer.from(secret);
  return [
    [`${name}, as it is`, secret],
    [`${name}, in hex`, bytes.toString("hex")],
    // Base64 of a part that begins anywhere: the middle, in the three ways in which it can be aligned.
    ...[0, 1, 2].map((shift) => [
      `${name}, in base64 (${shift})`,
      bytes
        .subarray(shift, shift + 18)
        .toString("base64")
        .slice(0, 22),
    ]),
  ] as [string, string][];
});
const findIn = (text: string) => forms.filter(([, form]) => text.includes(form)).map(([name]) => name);

describe("customers' keys", function () {
  this.timeout(60_000);
  let upstream: FakeProvider;
  let test: TestPlatform;
  const closing: (() => Promise<void>)[] = [];
  const seen: { where: string; text: string }[] = [];
  before(async () => {
    upstream = await startFakeProvider();
    test = await startPlatform({ services: "private", workers: false });
  });
  after(async () => {
    for (const close of closing) await close();
    await test.close();
    await upstream.close();
  });

  it("are nowhere but in their owner's request and their provider's", async () => {
    let log = "";
    const destination = new Writable({
      write(chunk, _encoding, done) {
        log += String(chunk);
        done();
      },
    });
    const config = loadConfig({
      ...test.env,
      LOG_LEVEL: "trace",
      OPENAI_API_KEY: secrets.platform,
      OPENAI_BASE_URL: upstream.url,
      ANTHROPIC_BASE_URL: upstream.origin,
      FETCH_ALLOW_ORIGINS: upstream.origin,
      PROVIDER_FIRST_BYTE_TIMEOUT_MS: "300",
      PROVIDER_ANSWER_TIMEOUT_MS: "300",
      BATCH_COLLECT_MS: "100",
    });
    const logger = makeLogger({ level: "trace", name: "leak", destination });
    const { api, close } = await openAll(config, logger);
    closing.push(close);
    const call = async (method: string, path: string, body?: unknown, key = test.keys.owner) => {
      const response = await fetch(`${api.url}${path}`, {
        method,
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      seen.push({ where: `${method} ${path} → ${response.status}`, text });
      seen.push({ where: `headers of ${method} ${path}`, text: JSON.stringify([...response.headers]) });
      return response.status;
    };
    const chat = (model: string, more: object = {}) =>
      call("POST", "/ai/chat", { model, messages: [{ role: "user", content: "hello" }], ...more });

    expect(await chat("gpt-5.4-nano"), "by the platform's key").to.equal(200);
    expect(await call("PUT", "/ai/providers/openai/key", { key: secrets.openai })).to.equal(200);
    expect(await call("PUT", "/ai/providers/anthropic/key", { key: secrets.anthropic })).to.equal(200);
    expect(await chat("gpt-5.4-nano")).to.equal(200);
    expect(await chat("claude-haiku-5-5")).to.equal(200);
    expect(upstream.requests.map(({ headers }) => headers.authorization ?? headers["x-api-key"])).to.deep.equal([
      `Bearer ${secrets.platform}`,
      `Bearer ${secrets.openai}`,
      secrets.anthropic,
    ]);
    const model = { id: "small", type: "chat", contextWindow: 8_000, inputUsdPerMTok: 1, outputUsdPerMTok: 1 };
    const custom = { baseUrl: upstream.url, key: secrets.custom, wire: "openai-chat", models: [model] };
    expect(await call("PUT", "/ai/providers/custom/lab", custom)).to.equal(200);
    expect(await call("PUT", "/ai/providers/custom/lab", { ...custom, wire: "none" })).to.equal(400);
    expect(await call("PUT", "/ai/providers/custom/lab", { ...custom, baseUrl: "http://10.0.0.1/" })).to.equal(400);
    expect(await chat("lab/small")).to.equal(200);
    expect(upstream.requests.at(-1)?.headers.authorization).to.equal(`Bearer ${secrets.custom}`);
    upstream.next({ status: 400, errorMessage: `not with ${secrets.custom}` });
    expect(await chat("lab/small")).to.equal(400);
    upstream.setDefault({ status: 500, errorMessage: `not with ${secrets.custom}` });
    expect(await chat("lab/small", { stream: true })).to.equal(502);
    upstream.reset();
    for (const path of ["", "/lab"]) expect(await call("GET", `/ai/providers/custom${path}`)).to.equal(200);
    // A provider that quotes the key, refuses it, times out, breaks off.
    const quoting = { error: { message: `Incorrect API key provided: ${secrets.openai}`, code: "invalid_api_key" } };
    for (const status of [401, 400, 403, 500, 429]) {
      upstream.setDefault({ status, rawBody: JSON.stringify(quoting) });
      expect(await chat("gpt-5.4-nano")).to.be.within(400, 502);
    }
    upstream.reset();
    upstream.setDefault({ firstByteMs: 20_000 });
    expect(await chat("claude-haiku-5-5")).to.be.oneOf([502, 504]);
    upstream.reset();
    upstream.setDefault({ fault: { type: "cut", afterPieces: 1 } });
    await chat("claude-haiku-5-5", { stream: true });
    upstream.reset();
    expect(await call("POST", "/ai/providers/openai/rotate", { key: secrets.rotated })).to.equal(200);
    await chat("gpt-5.4-nano");
    for (const wrong of [{ key: `${secrets.openai} x` }, { key: [secrets.openai] }, { wrong: secrets.openai }]) {
      expect(await call("PUT", "/ai/providers/openai/key", wrong)).to.equal(400);
    }
    expect(await call("PUT", `/ai/providers/openai/key?verify=true`, { key: secrets.openai })).to.be.within(200, 502);
    expect(await chat("claude-haiku-5-5", { prefer_async: true }), "a batch, which this upstream has none of").to.equal(
      202,
    );
    expect(await call("GET", "/ai/providers")).to.equal(200);
    const waiting = async () => {
      await call("GET", "/jobs?kind=completion&status=awaiting");
      return seen.at(-2)?.text.includes('"data":[]');
    };
    await pollUntil(waiting, { what: "the end of the batch's job" });
    for (const path of [
      "/admin/queues/api/queues",
      "/admin/queues/api/queues?activeQueue=batch-completions&status=latest",
    ]) {
      expect(await call("GET", path, undefined, config.http.adminToken)).to.equal(200);
    }
    await close();

    expect(log).to.contain('"msg":"request"'); // there is a log to look at
    seen.push({ where: "the log", text: log }, ...(await readPlaces(config)));
    for (const { where, text } of seen) expect(findIn(text), where).to.deep.equal([]);

    // The search would find them.
    for (const secret of Object.values(secrets)) {
      expect(findIn(`..${secret}..`)).to.have.lengthOf(1);
      expect(findIn(Buffer.from(`..${secret}..`).toString("hex"))).to.have.lengthOf(1);
      expect(findIn(Buffer.from(`x${secret}x`).toString("base64"))).to.not.have.lengthOf(0);
    }
  });
});

describe("the search for secrets", () => {
  it("finds planted secrets in each type of Redis and in the store", async () => {
    const test = await startPlatform({ services: "private", workers: false, holdsSecrets: true });
    try {
      const { config, redis } = test.platform;
      const secret = (place: string) => `sk-PlantedIn${place}0123456789`;
      // Long and even, which Redis keeps compressed in a dump.
      const value = (place: string) => `${"a".repeat(200)} ${secret(place)} ${"a".repeat(200)}`;
      const key = (place: string) => `${redis.prefix}:planted:${place}`;
      await redis.producer.set(key("String"), value("String"));
      await redis.producer.hset(key("Hash"), "field", value("Hash"));
      await redis.producer.rpush(key("List"), value("List"));
      await redis.producer.sadd(key("Set"), value("Set"));
      await redis.producer.zadd(key("Zset"), 1, value("Zset"));
      await redis.producer.xadd(key("Stream"), "*", "field", value("Stream"));
      const agent = { name: "planted", model: "auto", systemPrompt: value("Store") };
      const created = await fetch(`${test.url}/agents`, {
        method: "POST",
        headers: { authorization: `Bearer ${test.keys.admin}`, "content-type": "application/json" },
        body: JSON.stringify(agent),
      });
      expect(created.status, await created.text()).to.equal(201);
      const places = await readPlaces(config);
      const found = new Set(places.flatMap(({ text }) => secretsIn(text)));
      const planted = ["String", "Hash", "List", "Set", "Zset", "Stream", "Store"];
      expect([...found]).to.have.members(planted.map(secret));
      expect(() => rejectSecrets(places)).to.throw("a secret has leaked");
      expect(secretsIn(`the key ${test.keys.owner}.`)).to.deep.equal([test.keys.owner]);
    } finally {
      await test.close();
    }
  });
});

/** API and worker over the platform of the test, with a log that is looked at. Closing them again does nothing. */
async function openAll(config: ReturnType<typeof loadConfig>, logger: Logger) {
  const platform = await openPlatform(config, { name: "leak", logger });
  const api = await serveApi(platform);
  const workers = await startWorkers(platform, { concurrencyFactor: 1, shutdownGraceMs: 1_000 });
  let closed: Promise<void> | undefined;
  const close = async () => {
    await workers.close();
    await api.close();
    await platform.close();
  };
  return {
    api,
    close: () => {
      closed ??= close();
      return closed;
    },
  };
}
