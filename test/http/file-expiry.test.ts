import { expect } from "chai";
import OpenAI, { toFile } from "openai";
import { newId } from "../../src/lib/ids.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

const HOUR_S = 3_600;
const expires_after = { anchor: "created_at" as const, seconds: HOUR_S };
const line = (n: number) =>
  JSON.stringify({
    custom_id: `c${n}`,
    method: "POST",
    url: "/v1/embeddings",
    body: { model: "switchyard-embed", input: `The walrus ${n}` },
  });

describe("files that expire", function () {
  this.timeout(60_000);
  let test: TestPlatform;
  let openai: OpenAI;
  let client: ApiClient;
  before(async () => {
    test = await startPlatform({ env: { BATCH_POLL_MS: "50", BATCH_COLLECT_MS: "50" } });
    openai = new OpenAI({ apiKey: test.keys.member, baseURL: `${test.url}/v1`, maxRetries: 0 });
    client = makeClient({ url: test.url, key: test.keys.member });
  });
  after(() => test?.close());

  const upload = async (more: object) =>
    openai.files.create({ file: await toFile(Buffer.from(line(1)), "a.jsonl"), purpose: "batch", ...more });
  const storedBytes = async () => {
    await test.platform.store.use.settled();
    return (await client.get("/usage")).at("quotas.storedBytes.used") as number;
  };

  it("say when, as OpenAI's client asks for it", async () => {
    const file = await upload({ expires_after });
    expect(file.expires_at).to.equal(file.created_at + HOUR_S);
    expect((await openai.files.retrieve(file.id)).expires_at).to.equal(file.expires_at);
    expect((await upload({})).expires_at).to.equal(undefined);
  });

  it("are refused with another anchor, time or field", async () => {
    for (const [wrong, param] of [
      [{ anchor: "last_active_at", seconds: HOUR_S }, "expires_after.anchor"],
      [{ anchor: "created_at", seconds: HOUR_S - 1 }, "expires_after.seconds"],
      [{ anchor: "created_at", seconds: 2_592_001 }, "expires_after.seconds"],
      [{ anchor: "created_at" }, "expires_after.seconds"],
      [{ ...expires_after, days: 1 }, "expires_after"],
    ] as const) {
      const refused = await upload({ expires_after: wrong }).catch((error: unknown) => error);
      expect(refused, param).to.be.instanceOf(OpenAI.BadRequestError).and.to.include({ param });
    }
    const form = new FormData();
    form.set("purpose", "batch");
    form.set("expiresAfter[seconds]", "3600");
    form.set("file", new File([line(1)], "a.jsonl"));
    expect((await client.request("POST", "/v1/files", { raw: form })).status, "a near name").to.equal(400);
  });

  it("are gone after it for everybody, and their bytes are given back", async () => {
    const files = await Array.fromAsync(openai.files.list());
    const before = files.reduce((sum, { bytes }) => sum + bytes, 0);
    await pollUntil(async () => (await storedBytes()) === before, { what: "the return of what was refused" });
    const tenantId = await tenantOf(test);
    const _id = newId("file");
    const { store, vectorStores } = test.platform;
    const bytes = await store.sources.write(tenantId, _id, { bytes: Buffer.from(line(1)) }).then(() => line(1).length);
    const expiresAt = new Date(Date.now() - 1_000);
    const about = { filename: "old.jsonl", purpose: "batch" as const, bytes, createdAt: new Date(), expiresAt };
    await store.files.ensure({ _id, tenantId, ...about, removeAt: new Date(Date.now() + 3_600_000) }); // no sweep yet
    expect((await client.get(`/v1/files/${_id}`)).status).to.equal(404);
    expect((await client.get(`/v1/files/${_id}/content`)).status).to.equal(404);
    expect((await client.delete(`/v1/files/${_id}`)).status).to.equal(404);
    expect((await client.get("/v1/files")).text).not.to.contain(_id);
    const batch = { input_file_id: _id, endpoint: "/v1/embeddings", completion_window: "24h" };
    expect((await client.post("/v1/batches", batch)).status).to.equal(404);
    expect(await storedBytes()).to.be.above(before);
    await store.files.postponeRemoval({ _id, tenantId }, new Date());
    await vectorStores.sweep();
    expect(await store.sources.read(tenantId, _id)).to.equal(null);
    expect(await storedBytes()).to.equal(before);
  });

  it("are the answers of a batch that asks for it", async () => {
    const { id } = await upload({});
    const asked = { input_file_id: id, endpoint: "/v1/embeddings" as const, completion_window: "24h" as const };
    const wrong = openai.batches.create({ ...asked, output_expires_after: { anchor: "created_at", seconds: 60 } });
    const refused = await wrong.catch((error: unknown) => error);
    expect(refused).to.include({ status: 400, param: "output_expires_after.seconds" });
    const nothing = await client.post("/v1/batches", { ...asked, output_expires_after: null });
    expect([nothing.status, nothing.at("error.param")]).to.deep.equal([400, "output_expires_after"]);
    const batch = await openai.batches.create({ ...asked, output_expires_after: expires_after });
    const ended = await pollUntil(async () => {
      const now = await openai.batches.retrieve(batch.id);
      return ["completed", "failed"].includes(now.status) ? now : undefined;
    });
    const file = await openai.files.retrieve(ended.output_file_id ?? ended.error_file_id ?? "");
    expect(file.expires_at).to.equal(file.created_at + HOUR_S);
  });
});
