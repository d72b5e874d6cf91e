import { createHmac } from "node:crypto";
import { expect } from "chai";
import { rejectedUrls } from "../support/refused-urls.ts";
import type { ToolRequest } from "../support/tool-server.ts";
import { openWorkflowHarness, stepsOf, type WorkflowHarness } from "../support/workflow-harness.ts";

describe("webhooks of workflows", function () {
  this.timeout(60_000);
  let harness: WorkflowHarness;
  before(async () => {
    harness = await openWorkflowHarness();
  });
  after(() => harness?.close());

  const hook = (path: string, fields: object = {}) => ({
    type: "webhook",
    url: `${harness.site.origin}${path}`,
    method: "POST",
    ...fields,
  });
  const requestsTo = (path: string) => harness.site.requests.filter((request) => request.path === path);
  /** What a receiver computes, as https://www.standardwebhooks.com describes it. */
  const signatureOf = (secret: string, { headers, body }: ToolRequest) => {
    const key = Buffer.from(secret.replace("whsec_", ""), "base64");
    const signed = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
    return `v1,${createHmac("sha256", key).update(signed).digest("base64")}`;
  };
  const secretOf = async () => (await harness.admin.get("/webhooks/secret")).string("secret");

  it("are signed, so that a receiver can verify them by the documented recipe", async () => {
    harness.site.on("/signed", (_, response) => void response.writeHead(204).end());
    const run = await harness.run([hook("/signed", { id: "tell", body: { text: "häßlich {{ input.n }}" } })], { n: 1 });
    expect(run.at("status"), run.text).to.equal("completed");
    expect(run.at("steps[0].output.status")).to.equal(204);
    const [sent] = requestsTo("/signed");
    if (!sent) throw new Error("nothing came");
    expect(sent.body).to.equal('{"text":"häßlich 1"}');
    expect(sent.headers["content-type"]).to.equal("application/json");
    expect(sent.headers["webhook-id"]).to.equal(`${run.string("runId")}:0`);
    expect(sent.headers["idempotency-key"]).to.equal(`${run.string("runId")}:0`);
    expect(Math.abs(Number(sent.headers["webhook-timestamp"]) - Date.now() / 1_000)).to.be.lessThan(60);
    const secret = await secretOf();
    expect(Buffer.from(secret.slice(6), "base64")).to.have.lengthOf(32);
    expect(sent.headers["webhook-signature"]).to.equal(signatureOf(secret, sent));
    expect((await harness.member.get("/webhooks/secret")).status).to.equal(403);
  });

  it("carry two signatures for a while after the secret was replaced", async () => {
    harness.site.on("/rotated", (_, response) => void response.writeHead(200).end());
    const old = await secretOf();
    const rotated = await harness.admin.post("/webhooks/secret/rotate");
    expect(rotated.status, rotated.text).to.equal(200);
    const fresh = rotated.string("secret");
    expect(fresh).not.to.equal(old);
    const overlapMs = Date.parse(rotated.string("previousUntil")) - Date.now();
    expect(overlapMs / 3_600_000).to.be.within(23.9, 24);
    await harness.run([hook("/rotated", { method: "GET" })]);
    const [sent] = requestsTo("/rotated");
    if (!sent) throw new Error("nothing came");
    expect([sent.method, sent.body]).to.deep.equal(["GET", ""]);
    expect(sent.headers["webhook-signature"]).to.equal(`${signatureOf(fresh, sent)} ${signatureOf(old, sent)}`);
    const other = await harness.stranger.get("/webhooks/secret");
    expect([fresh, old]).not.to.contain(other.at("secret"));
  });

  it("are sent again, under the same id, while the receiver cannot take them", async () => {
    const seen: number[] = [];
    harness.site.on("/flaky", (_, response) => {
      seen.push(performance.now());
      if (seen.length === 1) response.socket?.destroy();
      else if (seen.length === 2) response.writeHead(429, { "retry-after": "1" }).end();
      else response.writeHead(seen.length === 3 ? 503 : 200, { "content-type": "application/json" }).end('{"ok":true}');
    });
    const run = await harness.run([hook("/flaky", { body: { a: 1 }, retry: { attempts: 4, backoffMs: 100 } })]);
    expect(run.at("status"), run.text).to.equal("completed");
    expect(run.at("steps[0].attempts")).to.equal(4);
    expect(run.at("steps[0].output.body")).to.deep.equal({ ok: true });
    const sent = requestsTo("/flaky");
    expect(new Set(sent.map(({ headers }) => headers["webhook-id"])).size).to.equal(1);
    expect(new Set(sent.map(({ headers }) => headers["idempotency-key"])).size).to.equal(1);
    const waits = seen.slice(1).map((at, index) => at - (seen[index] ?? 0));
    expect(waits[0], "the first wait, less its random part").to.be.at.least(50);
    expect(waits[1], "as long as the receiver asked for").to.be.at.least(1_000);
    expect(waits[2], "twice doubled").to.be.at.least(200);
  });

  it("fail their step when the receiver refuses, or never accepts them", async () => {
    for (const [status, times] of [
      [400, 1],
      [404, 1],
      [410, 1],
      [302, 1],
      [500, 2],
      [408, 2],
    ] as const) {
      const path = `/refuses-${status}`;
      harness.site.on(path, (_, response) => void response.writeHead(status, { location: "/elsewhere" }).end("no"));
      const run = await harness.run([hook(path, { retry: { attempts: 2, backoffMs: 1 } })]);
      expect(run.at("status"), path).to.equal("failed");
      expect(run.at("error.code"), path).to.equal("webhook_failed");
      expect(run.at("error.details.status"), path).to.equal(status);
      expect(requestsTo(path), path).to.have.lengthOf(times);
    }
    expect(requestsTo("/elsewhere"), "redirects are not followed").to.deep.equal([]);
  });

  it("go to no address that ingestion would not fetch, whether it is written down or made by an expression", async () => {
    for (const url of rejectedUrls) {
      const steps = [{ type: "webhook", url, method: "POST" }];
      const refused = await harness.member.post("/workflows", { name: "x", steps });
      expect([refused.status, refused.at("error.param")], url).to.deep.equal([400, "steps[0].url"]);
    }
    const made = await harness.create([{ type: "webhook", url: "{{ input }}", method: "POST" }]);
    const sample = rejectedUrls.filter((_, index) => index % 8 === 0);
    const check = async (url: string) => {
      const run = await harness.reach(made, await harness.start(made, url), "failed", "completed");
      expect(stepsOf(run)[0]?.error?.code, url).to.equal("source_refused");
      expect(stepsOf(run)[0]?.attempts, url).to.equal(1);
    };
    await Promise.all(sample.map(check));
  });

  it("keep no more than 64 KiB of an answer, and read no further", async () => {
    let written = 0;
    let isLeft = false;
    harness.site.on("/endless", (_, response) => {
      response.writeHead(200, { "content-type": "text/plain", "x-long": "y".repeat(5_000) });
      response.on("close", () => {
        isLeft = true;
      });
      const write = () => {
        while (!response.destroyed && response.write("x".repeat(16_384))) written += 16_384;
        if (!response.destroyed) response.once("drain", write);
      };
      write();
    });
    harness.site.on(
      "/broken-json",
      (_, response) =>
        void response
          .writeHead(200, { "content-type": "application/json", "set-cookie": "session=secret" })
          .end('{"a":'),
    );
    const run = await harness.run([hook("/endless"), hook("/broken-json")]);
    expect(run.at("status"), run.text.slice(0, 500)).to.equal("completed");
    expect(run.string("steps[0].output.body")).to.have.lengthOf(65_536);
    expect((run.at("steps[0].output.headers") as Record<string, string>)["x-long"]).to.have.lengthOf(1_000);
    expect(run.at("steps[1].output.body")).to.equal('{"a":');
    expect(run.text, "cookies").not.to.contain("session=secret");
    expect(isLeft).to.equal(true);
    expect(written).to.be.lessThan(16 << 20);
  });
});
