import { expect } from "chai";
import { guardKinds } from "../../src/guards/guard.ts";
import { guardPlaces } from "../../src/guards/rules.ts";
import { startGuardUpstream } from "../support/guard-upstream.ts";
import { type GuardedPath, guardedPaths } from "../support/guarded-paths.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { readPlaces } from "../support/secret-scan.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

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

const everywhere = (action: string) =>
  Object.fromEntries(guardKinds.map((kind) => [kind, Object.fromEntries(guardPlaces.map((place) => [place, action]))]));

describe("guards on every path", function () {
  this.timeout(240_000);
  let test: TestPlatform;
  let upstream: Awaited<ReturnType<typeof startGuardUpstream>>;
  let admin: ApiClient;
  let member: ApiClient;
  let paths: GuardedPath[];
  before(async () => {
    upstream = await startGuardUpstream();
    test = await startPlatform({
      services: "private",
      holdsSecrets: true,
      env: {
        OPENAI_API_KEY: "sk-test",
        OPENAI_BASE_URL: `${upstream.origin}/v1`,
        PROVIDER_MAX_ATTEMPTS: "1",
        STORE_COMPLETION_CONTENT: "true",
        EMBEDDING_MODEL: "text-embedding-3-small",
      },
    });
    [admin, member] = [test.keys.admin, test.keys.member].map((key) => makeClient({ url: test.url, key })) as [
      ApiClient,
      ApiClient,
    ];
    paths = await guardedPaths(member);
  });
  after(async () => {
    await test?.close();
    await upstream?.close();
  });

  const set = async (policy: object) => {
    const put = await admin.request("PUT", "/guards", { body: policy });
    expect(put.status, put.text).to.equal(200);
  };
  const holds = (text: string, value: string) =>
    text.includes(value) || text.includes(JSON.stringify(value).slice(1, -1));

  it("let no value of any kind through to a model, an answer or the store, on any path, masked or blocked", async () => {
    const table: string[] = [];
    const holes: string[] = [];
    for (const action of ["mask", "block"]) {
      await set({ rules: everywhere(action) });
      for (const { name, send } of paths) {
        let row = "";
        for (const kind of guardKinds) {
          const [value = "", text = ""] = values[kind] ?? [];
          upstream.requests.length = 0;
          const { said, refusal } = await send(text);
          const isSent = upstream.requests.some(({ raw }) => holds(raw, value));
          const isRight =
            action === "block"
              ? refusal === "compliance_blocked" || refusal === "invalid_request_error"
              : refusal === undefined;
          const isOk =
            !isSent && !holds(said, value) && isRight && !(action === "block" && upstream.requests.length > 0);
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
    const metrics = (await test.platform.metrics.render()).text;
    const found = [...places, { where: "metrics", text: metrics }].flatMap(({ where, text }) =>
      all.filter((value) => text.includes(value)).map((value) => `${value} in ${where}`),
    );
    expect(found).to.deep.equal([]);
  });

  it("are what keeps a value away: one that is only counted gets to the model on every path that asks one", async () => {
    await set({ rules: everywhere("flag") });
    const [value = "", text = ""] = values.email_address ?? [];
    const missed: string[] = [];
    for (const { name, send } of paths) {
      upstream.requests.length = 0;
      const { refusal } = await send(text);
      const asksNone = /^(?:conversation|event|query|answer|rating|ingest, metadata|ingest, title)/.test(name);
      const isSent = upstream.requests.some(({ raw }) => holds(raw, value));
      if (refusal !== undefined || (!isSent && !asksNone)) missed.push(`${name}: ${String(refusal)}`);
    }
    expect(missed).to.deep.equal([]);
  });
});
