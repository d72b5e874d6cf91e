import { expect } from "chai";
import { AppError } from "../../src/lib/errors.ts";
import { makeApiKey } from "../../src/tenancy/api-keys.ts";
import { makeTenancy } from "../../src/tenancy/tenancy.ts";
import { makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { sendBytes } from "../support/raw-http.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const FLOOD = 2_000;

describe("a flood of unknown keys from one address", () => {
  let test: TestPlatform;
  before(async () => {
    test = await startPlatform({ workers: false, env: { TRUSTED_PROXIES: "127.0.0.0/8, ::1" } });
  });
  after(() => test.close());

  const list = async (key: string, address: string) => {
    const client = makeClient({ url: test.url, key });
    return (await client.get("/jobs", { headers: { "x-forwarded-for": address } })).status;
  };
  const makeKey = async () => {
    const { tenancy } = test.platform;
    const tenantId = await tenancy.ensureTenant("neighbours");
    return (await tenancy.createKey({ tenantId, role: "member", subject: "m@neighbours" })).key;
  };

  it("costs few reads of the store", async () => {
    const { config, store, redis, logger } = test.platform;
    const asked: number[] = [];
    const apiKeys = {
      ...store.apiKeys,
      findByHashes: (hashes: readonly string[]) => {
        asked.push(hashes.length);
        return store.apiKeys.findByHashes(hashes);
      },
    };
    const tenancy = makeTenancy({ config, store: { ...store, apiKeys }, redis, logger });
    const tryKey = async (address: string) => {
      try {
        return (await tenancy.authenticate(makeApiKey(), () => address)) === null ? "unknown" : "known";
      } catch (error) {
        return error instanceof AppError ? error.code : "another error";
      }
    };
    const outcomes = await Promise.all(Array.from({ length: FLOOD }, () => tryKey("203.0.113.9")));
    expect(asked, "one read, for the places of one address").to.deep.equal([64]);
    expect(outcomes.filter((outcome) => outcome === "unknown")).to.have.length(64);
    expect(outcomes.filter((outcome) => outcome === "rate_limited")).to.have.length(FLOOD - 64);
    await Promise.all(Array.from({ length: FLOOD }, (_, n) => tryKey(`198.51.${n >> 8}.${n & 255}`)));
    expect(asked, "one more, for all addresses together").to.deep.equal([64, 512]);
    await tenancy.close();
  });

  it("is none when it is many first calls with one key", async () => {
    const { config, store, redis, logger } = test.platform;
    const tenancy = makeTenancy({ config, store, redis, logger });
    const key = await makeKey();
    const found = await Promise.all(Array.from({ length: 200 }, () => tenancy.authenticate(key, () => "203.0.113.11")));
    expect(new Set(found.map((caller) => caller?.subject))).to.deep.equal(new Set(["m@neighbours"]));
    await tenancy.close();
  });

  it("stops no key that was used here before, and a new one only at its own address, and not for long", async () => {
    const [known, fresh, elsewhere] = await Promise.all([makeKey(), makeKey(), makeKey()]);
    expect(await list(known, "203.0.113.9")).to.equal(200);
    const refused: number[] = [];
    let isOver = false;
    const flood = async () => {
      while (!isOver) refused.push(await list(makeApiKey(), "203.0.113.9"));
    };
    const flooding = Array.from({ length: 200 }, flood);
    await pollUntil(async () => refused.length > 200);
    expect(await list(elsewhere, "203.0.113.10"), "a new key of another address").to.equal(200);
    for (let calls = 0; calls < 20; calls += 1) expect(await list(known, "203.0.113.9")).to.equal(200);
    await pollUntil(async () => (await list(fresh, "203.0.113.9")) === 200, { timeoutMs: 5_000 });
    isOver = true;
    await Promise.all(flooding);
    expect([401, 429]).to.include.members(refused);
  });

  it("is refused beyond the places of its address, with the time to wait", async () => {
    const heads = Array.from({ length: 200 }, () =>
      [
        "GET /jobs HTTP/1.1",
        "host: localhost",
        `authorization: Bearer ${makeApiKey()}`,
        "x-forwarded-for: 203.0.113.12",
      ]
        .map((line) => `${line}\r\n`)
        .join(""),
    );
    const answers = await sendBytes(test.url, `${heads.join("\r\n")}connection: close\r\n\r\n`);
    const statuses = [...answers.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => status);
    expect(new Set(statuses)).to.deep.equal(new Set(["401", "429"]));
    expect(answers.match(/^retry-after: 1\r$/gim)).to.have.length(statuses.filter((status) => status === "429").length);
  });
});
