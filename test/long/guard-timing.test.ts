import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { expect } from "chai";
import { guardKinds } from "../../src/guards/guard.ts";
import { makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import type { TakenStream } from "../support/stream-worker.ts";

const ROUNDS = 9;
const median = (all: readonly number[]) => [...all].sort((a, b) => a - b)[all.length >> 1] ?? Number.NaN;

describe("a stream that is masked", function () {
  this.timeout(120_000);
  let test: TestPlatform;
  let worker: Worker;
  before(async () => {
    worker = new Worker(new URL("../support/stream-worker.ts", import.meta.url));
    const [{ port }] = await once(worker, "message");
    test = await startPlatform({
      env: { OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1` },
    });
    const admin = makeClient({ url: test.url, key: test.keys.admin });
    const keyId = (await makeClient({ url: test.url, key: test.keys.member }).get("/me")).at("keyId");
    const rules = Object.fromEntries(guardKinds.map((kind) => [kind, { input: "mask", output: "mask" }]));
    const put = await admin.request("PUT", "/guards", { body: { exceptions: [{ keyId, rules }] } });
    expect(put.status, put.text).to.equal(200);
  });
  after(async () => {
    await test?.close();
    await worker?.terminate();
  });

  /** A stream, with the time that the product's thread had the processor for it, in ms. */
  const stream = async (key: string, content: string) => {
    const body = { model: "gpt-5.4-mini", stream: true, messages: [{ role: "user", content }] };
    const before = process.threadCpuUsage();
    worker.postMessage({ url: `${test.url}/v1/chat/completions`, key, body });
    const [taken] = (await once(worker, "message")) as [TakenStream];
    const { user, system } = process.threadCpuUsage(before);
    return { ...taken, cpuMs: (user + system) / 1_000 };
  };
  /** Medians of streams of both keys, in turns. */
  const compare = async (content: string) => {
    const both = {
      masked: [] as Awaited<ReturnType<typeof stream>>[],
      plain: [] as Awaited<ReturnType<typeof stream>>[],
    };
    for (let round = 0; round < ROUNDS + 2; round += 1) {
      const masked = await stream(test.keys.member, content);
      const plain = await stream(test.keys.admin, content);
      if (round < 2) continue; // the first ones warm up
      both.masked.push(masked);
      both.plain.push(plain);
    }
    return both;
  };

  it("takes at most 1.45 times the processor's time of one that is not", async () => {
    const { masked, plain } = await compare("Tell me of pumps.");
    const [own, other] = [masked, plain].map((all) => median(all.map(({ cpuMs }) => cpuMs))) as [number, number];
    process.stdout.write(
      `      3,000 words: ${own.toFixed(0)} ms masked, ${other.toFixed(0)} ms plain: ${(own / other).toFixed(2)}\n`,
    );
    expect(own / other).to.be.below(1.45);
  });

  it("has its first word after at most 1.5 times the time of one that is not", async () => {
    const { masked, plain } = await compare("Tell me of pumps, slowly, please.");
    const [own, other] = [masked, plain].map((all) => median(all.map(({ firstMs }) => firstMs))) as [number, number];
    process.stdout.write(
      `      first word: ${own.toFixed(0)} ms masked, ${other.toFixed(0)} ms plain: ${(own / other).toFixed(2)}\n`,
    );
    expect(own / other).to.be.below(1.5);
  });
});
