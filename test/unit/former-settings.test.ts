import { expect } from "chai";
import { loadConfig, settings } from "../../src/config/config.ts";

describe("A setting that had another name", () => {
  it("is read by its former name where the new one is not set", () => {
    expect(loadConfig({ PROVIDER_MAX_TRIES: "7" }).gateway.maxAttempts).to.equal(7);
    expect(loadConfig({ PROVIDER_MAX_TRIES: "7", PROVIDER_MAX_ATTEMPTS: "3" }).gateway.maxAttempts).to.equal(3);
  });
});

describe("A setting of an earlier release", () => {
  it("is told with what replaces it, if it is still set", () => {
    expect(loadConfig({ MAX_RUN_BYTES: "5", MAX_WORKFLOWS: "", MAX_RUNS: "7" }).notices).to.deep.equal([
      "MAX_RUN_BYTES is no setting now: runs have MAX_STORED_BYTES, apart from what is uploaded",
    ]);
  });

  it("is replaced by settings that are there", () => {
    const named = loadConfig(Object.fromEntries(formerly.map((name) => [name, "1"]))).notices;
    expect(named).to.have.lengthOf(formerly.length);
    for (const name of formerly) expect(settings).to.not.have.property(name);
    for (const name of named.join(" ").match(/[A-Z]+(?:_[A-Z]+)+/g) ?? [])
      if (!formerly.includes(name)) expect(settings).to.have.property(name);
  });

  it("leaves what it limited as it was by default", () => {
    const { quotas, limits, fetch } = loadConfig({});
    expect([quotas.runBytes, quotas.callLogBytes]).to.deep.equal([20 * 2 ** 30, 10 * 2 ** 30]);
    expect(quotas.idempotencyBytes).to.be.within(0.99 * 2 ** 30, 2 ** 30 + 1e8);
    expect([quotas.agents, quotas.workflows, quotas.vectorStoreBatches, quotas.widgetKeys]).to.deep.equal([
      1_000, 1_000, 1_000, 1_000,
    ]);
    expect([quotas.customProviders, limits.contentBytes, fetch.timeoutMs]).to.deep.equal([20, 20 << 20, 30_000]);
    expect(limits.widgetShare).to.deep.equal({ requestsPerMinute: 300, concurrentRequests: 50 });
  });
});

const formerly = [
  "MAX_RUN_BYTES",
  "MAX_CALL_LOG_BYTES",
  "IDEMPOTENCY_BYTES_PER_TENANT",
  "MAX_AGENTS",
  "MAX_WORKFLOWS",
  "MAX_VECTOR_STORE_BATCHES",
  "MAX_WIDGET_KEYS",
  "MAX_CUSTOM_PROVIDERS",
  "MAX_CONTENT_BYTES",
  "WIDGET_RATE_SHARE",
  "BATCH_SETTLE_MS",
  "PROVIDER_CONNECT_TIMEOUT_MS",
  "FETCH_TIMEOUT_MS",
];
