import { expect } from "chai";
import OpenAI, { NotFoundError, toFile } from "openai";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const pump = "The pump P-100 is bled in spring, before the season, by its upper valve.";
const crane = "The crane C-7 lifts nine tons, and its rope is changed every second year.";

describe("vector stores of OpenAI's client", () => {
  let platform: TestPlatform;
  let openai: OpenAI;
  let api: ApiClient;
  const poll = { pollIntervalMs: 20 };

  before(async () => {
    platform = await startPlatform();
    openai = new OpenAI({ apiKey: platform.keys.member, baseURL: `${platform.url}/v1` });
    api = makeClient({ url: platform.url, key: platform.keys.owner });
  });
  after(() => platform.close());

  const textFile = (name: string, text: string) => toFile(Buffer.from(text), name);
  const upload = async (name: string, text: string) =>
    (await openai.files.create({ file: await textFile(name, text), purpose: "assistants" })).id;
  const search = async (id: string, body: Omit<OpenAI.VectorStoreSearchParams, "query"> & { query?: string }) =>
    (await openai.vectorStores.search(id, { query: "pump crane valve rope", ...body })).data;

  it("are made, filled, searched, changed, listed and deleted", async () => {
    const store = await openai.vectorStores.create({ name: "Manuals", metadata: { site: "north" } });
    expect(store).to.deep.include({ object: "vector_store", name: "Manuals", status: "completed" });
    const file = await openai.vectorStores.files.uploadAndPoll(store.id, await textFile("pump.txt", pump), poll);
    expect(file).to.include({ status: "completed", vector_store_id: store.id, usage_bytes: pump.length });
    expect(file.last_error).to.equal(null);
    const [hit, ...others] = await search(store.id, { query: "When is the pump bled?" });
    expect(others).to.deep.equal([]);
    expect(hit).to.deep.include({ file_id: file.id, filename: "pump.txt", attributes: {} });
    expect(hit?.content).to.deep.equal([{ type: "text", text: pump }]);
    expect(hit?.score).to.be.within(0.01, 1);
    const content = await openai.vectorStores.files.content(file.id, { vector_store_id: store.id });
    expect(content.data.map(({ text }) => text)).to.deep.equal([pump]);
    const changed = await openai.vectorStores.update(store.id, { name: "Pumps" });
    expect(changed).to.deep.include({ name: "Pumps", metadata: { site: "north" } });
    const listed = await Array.fromAsync(openai.vectorStores.list({ limit: 1 }));
    expect(listed[0]?.id).to.equal("default");
    expect(listed.map(({ id }) => id)).to.include(store.id);
    expect((await openai.vectorStores.retrieve(store.id)).file_counts).to.deep.equal({
      in_progress: 0,
      completed: 1,
      failed: 0,
      cancelled: 0,
      total: 1,
    });
    expect((await openai.vectorStores.delete(store.id)).deleted).to.equal(true);
    await openai.vectorStores.retrieve(store.id).then(
      () => expect.fail("it is there"),
      (error: unknown) => expect(error).to.be.instanceOf(NotFoundError),
    );
    expect((await openai.files.retrieve(file.id)).purpose).to.equal("assistants");
    const gone = await api.post("/rag/query", { query: "pump bled", collection: store.id });
    expect([gone.status, gone.at("error.param")]).to.deep.equal([404, "collection"]);
  });

  it("take batches of files with attributes, which searches filter by", async () => {
    const store = await openai.vectorStores.create({ name: "Batches" });
    const ids = [await upload("pump.txt", pump), await upload("crane.txt", crane)];
    const batch = await openai.vectorStores.fileBatches.createAndPoll(
      store.id,
      {
        files: [
          { file_id: ids[0] ?? "", attributes: { kind: "pump", year: 2020, old: true } },
          { file_id: ids[1] ?? "", attributes: { kind: "crane", year: 2024 } },
        ],
      },
      poll,
    );
    expect(batch).to.include({ status: "completed", vector_store_id: store.id });
    expect(batch.file_counts).to.include({ completed: 2, total: 2 });
    const listed = await openai.vectorStores.fileBatches.listFiles(batch.id, { vector_store_id: store.id });
    expect(listed.data.map(({ id }) => id)).to.deep.equal([...ids].reverse());
    const ascending = await openai.vectorStores.files.list(store.id, { order: "asc" });
    expect(ascending.data.map(({ id }) => id)).to.deep.equal(ids);
    const names = async (filters: OpenAI.VectorStoreSearchParams["filters"]) =>
      (await search(store.id, filters ? { filters } : {})).map(({ filename }) => filename).sort();
    const both = ["crane.txt", "pump.txt"];
    expect(await names(undefined)).to.deep.equal(both);
    expect(await names({ type: "eq", key: "kind", value: "pump" })).to.deep.equal(["pump.txt"]);
    expect(await names({ type: "ne", key: "kind", value: "pump" })).to.deep.equal(["crane.txt"]);
    expect(await names({ type: "gt", key: "year", value: 2020 })).to.deep.equal(["crane.txt"]);
    expect(await names({ type: "gte", key: "year", value: 2020 })).to.deep.equal(both);
    expect(await names({ type: "lt", key: "year", value: 2024 })).to.deep.equal(["pump.txt"]);
    expect(await names({ type: "lte", key: "year", value: 2019 })).to.deep.equal([]);
    expect(await names({ type: "in", key: "kind", value: ["crane", "lift"] })).to.deep.equal(["crane.txt"]);
    expect(await names({ type: "nin", key: "kind", value: ["crane"] })).to.deep.equal(["pump.txt"]);
    const old = { type: "eq", key: "old", value: true } as const;
    const recent = { type: "gte", key: "year", value: 2024 } as const;
    expect(await names({ type: "and", filters: [old, recent] })).to.deep.equal([]);
    expect(await names({ type: "or", filters: [old, recent] })).to.deep.equal(both);
    await openai.vectorStores.files.update(ids[0] ?? "", { vector_store_id: store.id, attributes: { year: 2030 } });
    expect(await names(recent)).to.deep.equal(both);
    expect((await search(store.id, { max_num_results: 1 })).length).to.equal(1);
    expect(await search(store.id, { ranking_options: { score_threshold: 1 } })).to.deep.equal([]);
    await openai.vectorStores.files.delete(ids[0] ?? "", { vector_store_id: store.id });
    expect(await names(undefined)).to.deep.equal(["crane.txt"]);
    await openai.files.delete(ids[1] ?? "");
    expect(await names(undefined)).to.deep.equal([]);
  });

  it("upload and poll several files at once", async () => {
    const store = await openai.vectorStores.create({});
    const files = await Promise.all([textFile("a.txt", pump), textFile("b.txt", crane)]);
    const batch = await openai.vectorStores.fileBatches.uploadAndPoll(store.id, { files }, poll);
    expect(batch.file_counts).to.include({ completed: 2, total: 2 });
  });

  it("report a file that cannot be read, and count it", async () => {
    const store = await openai.vectorStores.create({ file_ids: [await upload("empty.txt", "   ")] });
    const [file] = await pollUntil(async () => {
      const { data } = await openai.vectorStores.files.list(store.id, { filter: "failed" });
      return data.length > 0 ? data : undefined;
    });
    expect(file?.last_error?.code).to.equal("unsupported_file");
    expect((await openai.vectorStores.retrieve(store.id)).file_counts).to.include({ failed: 1, total: 1 });
  });

  it("are collections: what one way puts in, the other finds", async () => {
    await api.post("/rag/ingest", { content: pump, title: "Pump", collection: "harbour" });
    const [hit] = await search("harbour", {});
    expect(hit?.filename).to.equal("Pump");
    expect(hit?.file_id).to.match(/^doc_/);
    expect((await openai.vectorStores.retrieve("harbour")).file_counts.completed).to.equal(1);
    const collections = await api.get("/rag/collections");
    const harbour = (collections.at("data") as { name: string }[]).find(({ name }) => name === "harbour");
    expect(harbour).to.deep.include({ documents: 1, chunks: 1, unfinished: 0 });
    expect((await api.delete("/rag/collections/harbour")).status).to.equal(204);
    expect((await api.get("/rag/collections")).text).not.to.contain("harbour");
    expect((await api.delete("/rag/collections/default")).status).to.equal(409);
  });

  it("expire a while after their last use, with what is in them", async () => {
    const store = await openai.vectorStores.create({ expires_after: { anchor: "last_active_at", days: 2 } });
    const file = await openai.vectorStores.files.uploadAndPoll(store.id, await textFile("pump.txt", pump), poll);
    const { expires_at: expiresAt, last_active_at: lastActiveAt } = await openai.vectorStores.retrieve(store.id);
    expect((expiresAt ?? 0) - (lastActiveAt ?? 0)).to.equal(2 * 86_400);
    const { platform: inner } = platform;
    const tenantId = (await inner.tenancy.authenticate(platform.keys.member))?.tenantId ?? "";
    const record = await inner.store.collections.find(tenantId, store.id);
    await inner.store.collections.use({ ...record, tenantId, name: store.id, expiresAfterDays: -1 } as never);
    await search(store.id, {}).then(
      () => expect.fail("it is searched"),
      (error: { status?: number }) => expect(error.status).to.be.oneOf([404, 409]),
    );
    await inner.rag.collections.sweep();
    await pollUntil(async () => (await api.get(`/v1/vector_stores/${store.id}`)).status === 404);
    expect((await openai.files.retrieve(file.id)).id).to.equal(file.id);
  });

  it("stop a batch, and continue one whose process died", async () => {
    const store = await openai.vectorStores.create({});
    const ids = [await upload("pump.txt", pump), await upload("crane.txt", crane)];
    const { vectorStoreBatches } = platform.platform.store;
    const { advance } = vectorStoreBatches;
    vectorStoreBatches.advance = async () => {
      throw new Error("the process dies after the first file");
    };
    const broken = new OpenAI({ apiKey: platform.keys.member, baseURL: `${platform.url}/v1`, maxRetries: 0 });
    await broken.vectorStores.fileBatches.create(store.id, { file_ids: ids }).catch(() => undefined);
    vectorStoreBatches.advance = advance;
    const before = new Date(Date.now() + 1_000);
    const [batch] = await vectorStoreBatches.unfinished({ before, limit: 10 });
    const { unfinished } = vectorStoreBatches;
    vectorStoreBatches.unfinished = ({ limit }) => unfinished({ before, limit });
    await platform.platform.vectorStores.sweep();
    vectorStoreBatches.unfinished = unfinished;
    const ended = await openai.vectorStores.fileBatches.poll(store.id, batch?._id ?? "", poll);
    expect(ended).to.deep.include({ status: "completed" });
    expect(ended.file_counts).to.include({ completed: 2, total: 2 });
    const cancelled = await openai.vectorStores.fileBatches.cancel(ended.id, { vector_store_id: store.id });
    expect(cancelled.status).to.equal("cancelled");
    expect(cancelled.file_counts.completed).to.equal(2);
  });

  it("name what they accept and do not use, and refuse what is out of bounds", async () => {
    const strategy = (size: number, overlap: number) => ({
      type: "static",
      static: { max_chunk_size_tokens: size, chunk_overlap_tokens: overlap },
    });
    const made = await api.post("/v1/vector_stores", { chunking_strategy: strategy(800, 400) });
    expect(made.headers.get("x-svc-ignored")).to.equal("chunking_strategy");
    expect((await api.post("/v1/vector_stores", { chunking_strategy: strategy(800, 401) })).status).to.equal(400);
    const path = `/v1/vector_stores/${made.string("id")}`;
    const deep = (levels: number): object =>
      levels === 0 ? { type: "eq", key: "a", value: 1 } : { type: "and", filters: [deep(levels - 1)] };
    const wide = { type: "or", filters: Array.from({ length: 101 }, () => deep(0)) };
    for (const [filters, status] of [
      [deep(3), 200],
      [deep(4), 400],
      [wide, 400],
      [{ type: "like", key: "a", value: "b" }, 400],
    ] as const) {
      expect((await api.post(`${path}/search`, { query: "x", filters })).status).to.equal(status);
    }
    expect((await api.post(`${path}/search`, { query: "x", max_num_results: 51 })).status).to.equal(400);
    expect((await api.post(`${path}/files`, { file_id: "file_01J00000000000000000000000" })).status).to.equal(404);
  });

  it("of other collections do not exist for a limited key, nor do files that it has not uploaded", async () => {
    const store = await openai.vectorStores.create({ name: "Secret" });
    const file = await openai.vectorStores.files.uploadAndPoll(store.id, await textFile("pump.txt", pump), poll);
    await api.post("/rag/ingest", { content: crane, collection: "open" });
    const key = (await api.post("/keys", { collections: ["open"] })).string("key");
    const limited = new OpenAI({ apiKey: key, baseURL: `${platform.url}/v1`, maxRetries: 0 });
    const statusOf = (call: Promise<unknown>) =>
      call.then(
        () => 200,
        (error: { status: number }) => error.status,
      );
    const place = { vector_store_id: store.id };
    const calls = [
      limited.vectorStores.retrieve(store.id),
      limited.vectorStores.update(store.id, { name: "Mine" }),
      limited.vectorStores.delete(store.id),
      limited.vectorStores.search(store.id, { query: "pump" }),
      limited.vectorStores.files.list(store.id),
      limited.vectorStores.files.retrieve(file.id, place),
      limited.vectorStores.files.content(file.id, place),
      limited.vectorStores.files.update(file.id, { ...place, attributes: {} }),
      limited.vectorStores.files.delete(file.id, place),
      limited.vectorStores.files.create(store.id, { file_id: file.id }),
      limited.vectorStores.files.create("open", { file_id: file.id }),
      limited.vectorStores.fileBatches.create("open", { file_ids: [file.id] }),
      limited.files.retrieve(file.id),
      limited.files.content(file.id),
      limited.files.delete(file.id),
      limited.batches.create({ input_file_id: file.id, endpoint: "/v1/embeddings", completion_window: "24h" }),
    ];
    expect(await Promise.all(calls.map(statusOf))).to.deep.equal(calls.map(() => 404));
    expect(await statusOf(limited.vectorStores.create({}))).to.equal(403);
    expect((await limited.vectorStores.list()).data.map(({ id }) => id)).to.deep.equal(["open"]);
    expect((await limited.files.list()).data).to.deep.equal([]);
    const own = makeClient({ url: platform.url, key });
    expect((await own.get("/rag/collections")).at("data")).to.have.length(1);
    expect((await own.delete(`/rag/collections/${store.id}`)).status).to.equal(404);
    const mine = await limited.vectorStores.files.uploadAndPoll("open", await textFile("own.txt", pump), poll);
    expect(mine.status).to.equal("completed");
  });
});
