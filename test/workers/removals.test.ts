import { expect } from "chai";
import { makePace } from "../../src/isolation/pace.ts";
import { makeDocuments } from "../../src/rag/documents.ts";
import type { Caller } from "../../src/tenancy/roles.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

/** Processor time of a tenant that makes it one that did much of late, in ms. */
const MUCH_MS = 1_000;
const DOCUMENTS = 4;

/** The clock of the pace stands still, so that a tenant's effort is what the test says. */
describe("many removals of one tenant", () => {
  let test: TestPlatform;
  let client: ApiClient;
  let caller: Caller;
  let now: number;
  let atOnce: number;
  let mostAtOnce: number;
  before(async () => {
    test = await startPlatform({ workers: false });
    client = makeClient({ url: test.url, key: test.keys.member });
    caller = { tenantId: await tenantOf(test), keyId: "key", subject: "ana", role: "member", collections: undefined };
  });
  after(() => test.close());
  beforeEach(() => {
    [now, atOnce, mostAtOnce] = [0, 0, 0];
  });

  /** Asks for all removals at once, while these tenants work. None ends before `together` of them have begun. */
  const removeAll = async (tenants: readonly string[], together: number) => {
    const { store, jobs, guards } = test.platform;
    const pace = makePace(() => now);
    for (const tenantId of tenants) pace.begins(tenantId);
    await pace.share(caller.tenantId, new AbortController().signal, async () => {
      now += MUCH_MS;
    });
    const remove: typeof store.chunks.remove = async (...given) => {
      atOnce += 1;
      mostAtOnce = Math.max(mostAtOnce, atOnce);
      await pollUntil(() => mostAtOnce >= together);
      await store.chunks.remove(...given);
      atOnce -= 1;
    };
    const documents = makeDocuments({ store: { ...store, chunks: { ...store.chunks, remove } }, jobs, pace, guards });
    const ids: string[] = [];
    for (let n = 0; n < DOCUMENTS; n += 1) {
      const headers = { prefer: "respond-async" };
      ids.push((await client.post("/rag/ingest", { content: `Page ${n}.` }, { headers })).string("documentId"));
    }
    await Promise.all(ids.map((id) => documents.remove(caller, id)));
    for (const id of ids) expect((await client.get(`/rag/documents/${id}`)).status).to.equal(404);
    for (const id of ids) expect(await store.sources.read(caller.tenantId, id), "its source").to.equal(null);
    return mostAtOnce;
  };

  it("are done one after the other while others work", async () => {
    expect(await removeAll([caller.tenantId, "another"], 1)).to.equal(1);
  });

  it("are done at once while nobody else works", async () => {
    expect(await removeAll([caller.tenantId], DOCUMENTS)).to.equal(DOCUMENTS);
  });
});
