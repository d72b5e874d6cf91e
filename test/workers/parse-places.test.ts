import { expect } from "chai";
import { makeMemory } from "../../src/isolation/memory.ts";
import { AppError } from "../../src/lib/errors.ts";
import { makeRag, type Rag } from "../../src/rag/rag.ts";
import type { Store } from "../../src/store/store.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";
import { workContext } from "../support/work-context.ts";

/** A tenant has two processes that parse at a time: after so many attempts that kept theirs, none would be left. */
const ATTEMPTS = 3;
/** What indexing asks of the store, in this order. */
const calls = [
  "tenants.find",
  "documents.findByContent",
  "chunks.embeddingsByHash",
  "chunks.insert",
  "documents.publish",
] as const;

/** No worker runs here: each attempt is made by hand, with a store that fails where the test says. */
describe("the places of a tenant's parsing processes", () => {
  let test: TestPlatform;
  let client: ApiClient;
  let rag: Rag;
  let failing = "";
  let failures = 0;

  /** The store's part, in which the call that fails now fails. */
  const failingPart = <T extends object>(name: string, part: T): T =>
    new Proxy(part, {
      get: (target, property) => {
        if (`${name}.${String(property)}` !== failing) return Reflect.get(target, property);
        return () => {
          failures += 1;
          return Promise.reject(new AppError("unavailable", "The test's store failed.", { retryable: true }));
        };
      },
    });

  before(async () => {
    test = await startPlatform({ workers: false });
    client = makeClient({ url: test.url, key: test.keys.member });
    const { store, ...others } = test.platform;
    const names = ["tenants", "documents", "chunks"] as const;
    const failingStore: Store = { ...store };
    for (const name of names) Object.assign(failingStore, { [name]: failingPart(name, store[name]) });
    rag = makeRag({ ...others, store: failingStore, memory: makeMemory() });
  });
  after(async () => {
    await rag.close();
    await test.close();
  });

  it("are free again after attempts that failed at any call of the store", async () => {
    const content = "The sluice opens at high water.";
    const accepted = await client.post("/rag/ingest", { content }, { headers: { prefer: "respond-async" } });
    const [documentId, jobId, tenantId] = [
      accepted.string("documentId"),
      accepted.string("jobId"),
      await tenantOf(test),
    ];
    const index = () => rag.work.run(workContext(test, { tenantId, recordId: documentId, jobId }));
    for (const call of calls) {
      failing = call;
      failures = 0;
      for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
        const error = await index().catch((thrown: unknown) => thrown);
        expect(error, call).to.have.property("message", "The test's store failed.");
      }
      expect(failures, call).to.equal(ATTEMPTS);
    }
    failing = "";
    await index();
    expect((await client.get(`/rag/documents/${documentId}`)).at("status")).to.equal("indexed");
  });
});
