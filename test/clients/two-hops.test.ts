import { expect } from "chai";
import { wireNames } from "../../src/gateway/providers/wires.ts";
import { makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

/** The suites beside this one run through two platforms as well (test/support/describe-targets.ts). */
describe("a second platform as the custom provider of the first", () => {
  let second: TestPlatform;
  let first: TestPlatform;
  before(async () => {
    second = await startPlatform({ workers: false });
    first = await startPlatform({ workers: false, env: { FETCH_ALLOW_ORIGINS: second.url } });
  });
  after(async () => {
    await first.close();
    await second.close();
  });

  for (const wire of wireNames)
    it(`refuses a key by ${wire} as the tenant's own`, async () => {
      const admin = makeClient({ url: first.url, key: first.keys.admin });
      const id = "switchyard-offline";
      const models = [{ id, type: "chat", contextWindow: 32_000, inputUsdPerMTok: 2, outputUsdPerMTok: 3 }];
      const baseUrl = wire === "anthropic-messages" ? second.url : `${second.url}/v1`;
      const body = { baseUrl, key: `sk_${"0".repeat(27)}`, wire, models };
      expect((await admin.request("PUT", `/ai/providers/custom/${wire}`, { body })).status).to.equal(200);
      const messages = [{ role: "user", content: "What does a lease protect?" }];
      const refused = await admin.post("/ai/chat", { model: `${wire}/${id}`, messages });
      expect([refused.status, refused.at("error.code")]).to.deep.equal([400, "provider_key_refused"]);
    });
});
