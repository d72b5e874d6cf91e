import { expect } from "chai";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const agent = { name: "Desk", model: "meta-llm", systemPrompt: "You answer." };
const workflow = { name: "Desk", steps: [{ type: "rag_query", query: "Pumps" }] };

describe("quotas", () => {
  let test: TestPlatform;
  let member: ApiClient;
  let stranger: ApiClient;
  before(async () => {
    test = await startPlatform({ workers: false, env: { MAX_AGENTS: "3", MAX_WORKFLOWS: "2" } });
    [member, stranger] = [test.keys.member, test.keys.stranger].map((key) => makeClient({ url: test.url, key })) as [
      ApiClient,
      ApiClient,
    ]; // one a key
  });
  after(() => test.close());

  const cases = [
    { name: "agents", path: "/agents", body: agent, idField: "agentId", limit: 3, setting: "MAX_AGENTS" },
    {
      name: "workflows",
      path: "/workflows",
      body: workflow,
      idField: "workflowId",
      limit: 2,
      setting: "MAX_WORKFLOWS",
    },
  ];
  for (const { name, path, body, idField, limit, setting } of cases) {
    it(`limit how many ${name} a tenant keeps, and GET /usage reports how many it has`, async () => {
      const reported = async () => (await member.get("/usage")).at(`quotas.${name}`);
      expect(await reported()).to.deep.equal({ used: 0, limit });
      const ids: string[] = [];
      for (let count = 0; count < limit; count += 1) ids.push((await member.post(path, body)).string(idField));
      expect(await reported()).to.deep.equal({ used: limit, limit });
      const refused = await member.post(path, body);
      expect([refused.status, refused.at("error.code")]).to.deep.equal([413, "quota_exceeded"]);
      expect(refused.at("error.details")).to.deep.equal({ quota: name, limit });
      expect(refused.string("error.message")).to.include(setting);
      expect(refused.headers.get("retry-after"), "waiting does not help").to.equal(null);

      const replaced = await member.request("PUT", `${path}/${ids[0]}`, { body });
      expect(replaced.at("version"), "a replacement is no further one").to.equal(2);
      expect((await stranger.post(path, body)).status, "another tenant").to.equal(201);
      expect((await member.delete(`${path}/${ids[0]}`)).status).to.equal(204);
      expect((await member.post(path, body)).status, "in the place of the deleted one").to.equal(201);
      expect((await member.post(path, body)).status).to.equal(413);
    });
  }
});
