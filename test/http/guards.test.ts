import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { pino } from "pino";
import { guardKinds } from "../../src/guards/guard.ts";
import { guardPlaces } from "../../src/guards/rules.ts";
import { startTracing } from "../../src/observe/start-tracing.ts";
import { startGuardUpstream } from "../support/guard-upstream.ts";
import { type GuardedPath, guardedPaths } from "../support/guarded-paths.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { readPlaces } from "../support/secret-scan.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { startTraceCollector, type TraceCollector } from "../support/trace-collector.ts";

/** A made-up value of each kind, in a text that shows what it is. The first is what must not get through. */
const values: Record<string, readonly [value: string, text: string]> = {
  ssn: ["219-09-8642", "His number is 219-09-8642."],
  medical_record_number: ["H8844821", "MRN H8844821, please."],
  date_of_birth: ["03/12/1951", "born 03/12/1951 in Rome"],
  patient_identifier: ["77104822", "patient id 77104822 called"],
  card_number: ["4012 8888 8888 1881", "The card 4012 8888 8888 1881 works."],
  bank_account_number: ["90817263", "account number 90817263 is mine"],
  iban: ["DE89 3704 0044 0532 0130 00", "Pay DE89 3704 0044 0532 0130 00 now."],
  routing_number: ["021000021", "routing number 021000021 it is"],
  email_address: ["kim.walrus@example.org", "Write to kim.walrus@example.org today."],
  phone_number: ["+1 415 555 0199", "Call +1 415 555 0199 soon."],
  ip_address: ["203.0.113.77", "from 203.0.113.77 at noon"],
  secret: ["sk-proj-Walrus99Otter77Heron55", "use sk-proj-Walrus99Otter77Heron55 for it"],
};

/** Every file of a folder, as its bytes. */
async function filesIn(folder: string) {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  const read = async (where: string) => ({ where, text: await readFile(where, "latin1").catch(() => "") }); // it may be gone
  return Promise.all(files.map(read));
}

const everywhere = (action: string) =>
  Object.fromEntries(guardKinds.map((kind) => [kind, Object.fromEntries(guardPlaces.map((place) => [place, action]))]));

describe("guards on every path", function () {
  this.timeout(480_000);
  let test: TestPlatform;
  let upstream: Awaited<ReturnType<typeof startGuardUpstream>>;
  let admin: ApiClient;
  let member: ApiClient;
  let paths: GuardedPath[];
  let collector: TraceCollector;
  let tracing: Awaited<ReturnType<typeof startTracing>>;
  const logged: string[] = [];
  before(async () => {
    upstream = await startGuardUpstream();
    collector = await startTraceCollector();
    const config = { endpoint: collector.url, headers: {}, share: 1, serviceName: undefined };
    tracing = await startTracing({ config, process: "api", logger: pino({ level: "silent" }) });
    test = await startPlatform({
      onLog: (text) => logged.push(text),
      services: "private",
      holdsSecrets: true,
      env: {
        OPENAI_API_KEY: "sk-test",
        OPENAI_BASE_URL: `${upstream.origin}/v1`,
        PROVIDER_MAX_ATTEMPTS: "1",
        STORE_COMPLETION_CONTENT: "true",
        FETCH_ALLOW_ORIGINS: upstream.origin,
        BATCH_COLLECT_MS: "100",
        BATCH_POLL_MS: "100",
        RECONCILE_EVERY_MS: "200",
        EMBEDDING_MODEL: "text-embedding-3-small",
      },
    });
    const clientOf = (key: string) => makeClient({ url: test.url, key });
    [admin, member] = [clientOf(test.keys.admin), clientOf(test.keys.member)];
    const wire = { baseUrl: `${upstream.origin}/v1`, key: "sk-judge-0123456789", wire: "openai-chat" };
    const reranker = { id: "rerank-1", type: "rerank", contextWindow: 8_000, inputUsdPerMTok: 0, outputUsdPerMTok: 0 };
    const judge = await admin.request("PUT", "/ai/providers/custom/judge", { body: { ...wire, models: [reranker] } });
    expect(judge.status, judge.text).to.equal(200);
    paths = await guardedPaths({ member, admin, clientOf, url: test.url, memberKey: test.keys.member });
  });
  after(async () => {
    await test?.close();
    await tracing?.close();
    await upstream?.close();
    await collector?.close();
  });

  const set = async (policy: object) => {
    const put = await admin.request("PUT", "/guards", { body: policy });
    expect(put.status, put.text).to.equal(200);
  };
  const holds = (text: string, value: string) =>
    text.includes(value) || text.includes(JSON.stringify(value).slice(1, -1));

  it("let no value through to a model, an answer, the store, Redis, a log, a trace or a metric, on any path, masked or blocked", async () => {
    const table: string[] = [];
    const holes: string[] = [];
    for (const action of ["mask", "block"]) {
      await set({ rules: everywhere(action) });
      for (const { name, isExact, send } of paths) {
        let row = "";
        for (const kind of guardKinds) {
          const [value = "", text = ""] = values[kind] ?? [];
          upstream.requests.length = 0;
          const { said, refusal } = await send(text);
          const isSent = upstream.requests.some(({ raw }) => holds(raw, value));
          const isRight =
            action === "block" || isExact
              ? refusal === "compliance_blocked" || refusal === "invalid_request_error"
              : refusal === undefined;
          const isOk =
            !isSent &&
            !holds(said, value) &&
            isRight &&
            !((action === "block" || isExact) && upstream.requests.length > 0);
          row += isOk ? "  ok" : " !!!";
          if (!isOk)
            holes.push(`${action} ${name} ${kind}: sent ${isSent}, refusal ${String(refusal)}, ${said.slice(0, 300)}`);
        }
        table.push(`${action.padEnd(6)}${name.padEnd(30)}${row}`);
      }
    }
    const head = `${"".padEnd(37)}${guardKinds.map((kind) => kind.slice(0, 3)).join(" ")}`;
    process.stdout.write(`${[head, ...table].map((row) => `      ${row}`).join("\n")}\n`);
    expect(holes, holes.slice(0, 20).join("\n")).to.deep.equal([]);
    await test.platform.gateway.flush();
    const all = Object.values(values).map(([value]) => value);
    const places = await readPlaces(test.platform.config);
    await tracing.close();
    expect(collector.spans.length).to.be.above(100);
    expect(logged.join("")).to.contain("requestId");
    const others = [
      { where: "metrics", text: (await test.platform.metrics.render()).text },
      { where: "traces", text: collector.text() },
      { where: "the log", text: logged.join("") },
      ...(await filesIn(test.platform.config.dataDir)),
    ];
    const found = [...places, ...others].flatMap(({ where, text }) =>
      all.filter((value) => text.includes(value)).map((value) => `${value} in ${where}`),
    );
    expect(found).to.deep.equal([]);
  });

  it("are what keeps a value away: one that is only counted gets to the model on every path that asks one", async () => {
    await set({ rules: everywhere("flag") });
    const [value = "", text = ""] = values.email_address ?? [];
    const missed: string[] = [];
    for (const { name, isExact, asksNone, send } of paths) {
      if (isExact) continue; // an address would be called
      upstream.requests.length = 0;
      const { refusal } = await send(text);
      const isSent = upstream.requests.some(({ raw }) => holds(raw, value));
      if (refusal !== undefined || (!isSent && !asksNone)) missed.push(`${name}: ${String(refusal)}`);
    }
    expect(missed).to.deep.equal([]);
  });
});
