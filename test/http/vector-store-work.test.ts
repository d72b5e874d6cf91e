import { expect } from "chai";
import type { Store } from "../../src/store/store.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

/** Puts `own` in the place of a function until `work` has ended. */
async function instead<T extends object, K extends keyof T>(
  place: T,
  name: K,
  own: (given: T[K]) => T[K],
  work: () => unknown,
) {
  const given = place[name];
  place[name] = own(given);
  try {
    await work();
  } finally {
    place[name] = given;
  }
}

const fails = () => async () => {
  throw new Error("the process dies here");
};

describe("the work of vector stores", () => {
  let test: TestPlatform;
  let store: Store;
  let member: ApiClient;
  let stranger: ApiClient;

  before(async () => {
    test = await startPlatform({ workers: false, env: { MAX_OPEN_JOBS: "2" } });
    store = test.platform.store;
    member = makeClient({ url: test.url, key: test.keys.owner });
    stranger = makeClient({ url: test.url, key: test.keys.stranger });
  });
  afterEach(async () => {
    await cancelAll(member);
    await cancelAll(stranger);
  });
  after(() => test.close());

  const upload = async (client: ApiClient, text = "A pump moves water.") => {
    const form = new FormData();
    form.set("purpose", "assistants");
    form.set("file", new Blob([text]), "pump.txt");
    return (await client.request("POST", "/v1/files", { raw: form })).string("id");
  };
  const newStore = async (client: ApiClient) => (await client.post("/v1/vector_stores", {})).string("id");
  const tenantOf = async (key: string) => (await test.platform.tenancy.authenticate(key))?.tenantId ?? "";
  const documentsOf = async (client: ApiClient, name: string) =>
    (await client.get(`/v1/vector_stores/${name}/files`)).at("data") as { id: string }[];
  /** A sweep that takes all batches for cut ones. */
  const sweep = (work: () => Promise<unknown> = test.platform.vectorStores.sweep) =>
    instead(
      store.vectorStoreBatches,
      "unfinished",
      (unfinished) =>
        ({ limit }) =>
          unfinished({ before: new Date(Date.now() + 60_000), limit }),
      work,
    );
  const openJobs = async (client: ApiClient) =>
    ((await client.get("/jobs?status=queued")).at("data") as { jobId: string }[]).map(({ jobId }) => jobId);
  const cancelAll = async (client: ApiClient) => {
    for (const jobId of await openJobs(client)) await client.post(`/jobs/${jobId}/cancel`);
  };

  it("accepts a batch at the limit of open jobs, and lets it delay nobody else's", async () => {
    const name = await newStore(member);
    const ids = [await upload(member), await upload(member), await upload(member)];
    const made = await member.post(`/v1/vector_stores/${name}/file_batches`, { file_ids: ids });
    expect(made.status, made.text).to.equal(200);
    expect(made.at("file_counts")).to.deep.include({ in_progress: 3, total: 3 });
    expect(await documentsOf(member, name), "two have a job").to.have.length(2);

    const other = await newStore(stranger);
    const [first, second] = [await upload(stranger), await upload(stranger)];
    await instead(store.vectorStoreBatches, "advance", fails, () =>
      stranger.post(`/v1/vector_stores/${other}/file_batches`, { file_ids: [first, second] }),
    );
    expect(await documentsOf(stranger, other)).to.have.length(1);
    await cancelAll(stranger);
    await sweep();
    expect(await documentsOf(stranger, other), "of the other tenant").to.have.length(2);
    expect(await documentsOf(member, name)).to.have.length(2);

    await cancelAll(member);
    await sweep();
    expect(await documentsOf(member, name), "once there is room").to.have.length(3);
    const path = `/v1/vector_stores/${name}/file_batches/${made.string("id")}`;
    expect((await member.post(`${path}/cancel`)).at("status")).to.equal("cancelled");
  });

  it("is done by one of two sweeps that come to a batch at once", async () => {
    const name = await newStore(member);
    const ids = [await upload(member)];
    await instead(test.platform.rag, "accept", fails, () =>
      member.post(`/v1/vector_stores/${name}/file_batches`, { file_ids: ids }),
    );
    expect(await documentsOf(member, name)).to.have.length(0);
    const { vectorStores } = test.platform;
    const both = async () => {
      const found = store.vectorStoreBatches.unfinished({ before: new Date(), limit: 10 });
      const same = () => () => found;
      await instead(store.vectorStoreBatches, "unfinished", same, () =>
        Promise.all([vectorStores.sweep(), vectorStores.sweep()]),
      );
    };
    let accepted = 0;
    await instead(
      test.platform.rag,
      "accept",
      (accept) => (given) => {
        accepted += 1;
        return accept(given);
      },
      () => sweep(both),
    );
    expect(accepted).to.equal(1);
    expect(await documentsOf(member, name)).to.have.length(1);
  });

  it("deletes a file with documents that have expired", async () => {
    const name = await newStore(member);
    const id = await upload(member);
    expect((await member.post(`/v1/vector_stores/${name}/files`, { file_id: id })).status).to.equal(200);
    const tenantId = await tenantOf(test.keys.owner);
    const [document] = await store.documents.ofFile(tenantId, id, { limit: 1 });
    await store.documents.describeOne(tenantId, document?._id ?? "", { set: { expiresAt: new Date(0) }, unset: [] });
    expect((await member.get(`/v1/vector_stores/${name}/files/${id}`)).status).to.equal(404);
    expect((await member.delete(`/v1/files/${id}`)).status).to.equal(200);
    expect(await store.documents.ofFile(tenantId, id, { limit: 1 })).to.deep.equal([]);
  });

  it("ends the deletion of a file that was cut when it is repeated", async () => {
    const name = await newStore(member);
    const id = await upload(member);
    expect((await member.post(`/v1/vector_stores/${name}/files`, { file_id: id })).status).to.equal(200);
    const tenantId = await tenantOf(test.keys.owner);
    const cuts = [
      () => instead(store.documents, "ofFile", fails, () => member.delete(`/v1/files/${id}`)),
      () => instead(store.sources, "remove", fails, () => member.delete(`/v1/files/${id}`)),
      () => instead(store.files, "remove", fails, () => member.delete(`/v1/files/${id}`)),
    ];
    for (const cut of cuts) {
      await cut();
      expect((await member.get(`/v1/files/${id}`)).status, "it can be deleted again").to.equal(200);
    }
    expect((await member.delete(`/v1/files/${id}`)).status).to.equal(200);
    expect((await member.get(`/v1/files/${id}`)).status).to.equal(404);
    expect(await store.documents.ofFile(tenantId, id, { limit: 1 })).to.deep.equal([]);
  });

  it("keeps the collection of a document that is recorded while it is deleted", async () => {
    const ingest = (collection: string, content: string) =>
      member.post("/rag/ingest", { content, collection }, { headers: { prefer: "respond-async" } });
    await ingest("tide", "One.");
    await cancelAll(member);
    const whileDeleted = (gone: () => Promise<unknown>, work: () => Promise<unknown>) =>
      instead(
        store.documents,
        "insert",
        (insert) => async (record) => {
          await gone();
          return insert(record);
        },
        work,
      );
    await whileDeleted(
      () => member.delete("/rag/collections/tide"),
      async () => expect((await ingest("tide", "Two.")).status).to.equal(202),
    );
    expect((await member.get("/rag/collections")).text).to.include('"tide"');
    await cancelAll(member);

    const tenantId = await tenantOf(test.keys.owner);
    await whileDeleted(
      () => store.collections.beginDelete(tenantId, "tide"),
      async () => expect((await ingest("tide", "Three.")).at("error.code")).to.equal("wrong_state"),
    );
    const name = await newStore(member);
    const id = await upload(member);
    await whileDeleted(
      () => member.delete(`/v1/vector_stores/${name}`),
      async () => {
        const added = await member.post(`/v1/vector_stores/${name}/files`, { file_id: id });
        expect(added.status, "a vector store is not made again").to.equal(404);
      },
    );
    expect(await store.documents.ofFile(tenantId, id, { limit: 1 })).to.deep.equal([]);
    expect((await member.get("/rag/collections")).text).not.to.include(name);
  });

  it("searches by several queries at once, and records the use of a store no more than once a minute", async () => {
    const name = await newStore(member);
    let [now, most, uses] = [0, 0, 0];
    const counted = () =>
      instead(
        test.platform.rag,
        "query",
        (query) =>
          async (...given) => {
            now += 1;
            most = Math.max(most, now);
            return query(...given).finally(() => (now -= 1));
          },
        () => member.post(`/v1/vector_stores/${name}/search`, { query: ["pump", "crane", "valve"] }),
      );
    const count = (use: Store["collections"]["use"]): Store["collections"]["use"] => {
      return (record) => {
        uses += 1;
        return use(record);
      };
    };
    await instead(store.collections, "use", count, counted);
    expect([most, uses]).to.deep.equal([3, 0]);
    const early = (find: Store["collections"]["find"]): Store["collections"]["find"] => {
      return async (...given) => {
        const found = await find(...given);
        return found && { ...found, lastActiveAt: new Date(Date.now() - 61_000) };
      };
    };
    await instead(store.collections, "find", early, () => instead(store.collections, "use", count, counted));
    expect(uses).to.equal(1);
  });
});
