import { expect } from "chai";
import { loadConfig } from "../../src/config/config.ts";

describe("A setting that had another name", () => {
  it("is read by its former name where the new one is not set", () => {
    expect(loadConfig({ PROVIDER_MAX_TRIES: "7" }).gateway.maxAttempts).to.equal(7);
    expect(loadConfig({ PROVIDER_MAX_TRIES: "7", PROVIDER_MAX_ATTEMPTS: "3" }).gateway.maxAttempts).to.equal(3);
  });
});
