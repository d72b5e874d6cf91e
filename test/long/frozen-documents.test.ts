import { expect } from "chai";
import { type DocumentServer, startDocumentServer } from "../support/document-server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { raceWorkers } from "../support/race-workers.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";
import { workContext } from "../support/work-context.ts";

type Total = { name: string; documents: number; unfinished: number; chunks: number; bytes: number };
type Hit = { documentId: string; content: string };
/** What a document must be at the end of a race. `bytes`: of its source, where one is kept. */
type Expected = { collection: string; text: string; bytes: number; chunks?: number };
type Begun = { tenantId: string; recordId: string; jobId: string; isLastAttempt: boolean };

const later = { headers: { prefer: "respond-async" } };
const topK = 50;
/** More chunks than are written at once: one for each heading. */
const large = 260;

describe("a document that two workers index at once", () => {
  let site: DocumentServer;
  let test: TestPlatform;
  let owner: ApiClient;
  let tenantId: string;
  const known = new Map<string, Expected>();
  before(async () => {
    site = await startDocumentServer();
    test = await startPlatform({ workers: false, env: { FETCH_ALLOW_ORIGINS: site.origin } });
    owner = makeClient({ url: test.url, key: test.keys.owner });
    tenantId = await tenantOf(test);
  });
  after(async () => {
    await test.close();
    site.close();
  });

  const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);
  /** Accepts a document, of which the attempt's failure would be the job's. */
  const ingest = async (body: object, expected: Expected): Promise<Begun> => {
    const accepted = await owner.post("/rag/ingest", { ...body, collection: expected.collection }, later);
    expect(accepted.status, accepted.text).to.equal(202);
    const recordId = accepted.string("documentId");
    known.set(recordId, expected);
    return { tenantId, recordId, jobId: accepted.string("jobId"), isLastAttempt: true };
  };
  const ingestText = (collection: string, given: { content: string; text: string; externalId?: string }) => {
    const { text, ...body } = given;
    return ingest(body, { collection, text, bytes: Buffer.byteLength(body.content) });
  };
  const race = (begin: () => Promise<Begun>, every = 1) =>
    raceWorkers({
      test,
      begin,
      work: ({ rag }) => rag.work,
      every,
      check: async ({ recordId }, { other }, at) => {
        const chunks = await expectWhole(recordId, `frozen at ${at}`);
        if (other)
          expect(other, `frozen at ${at}`).to.deep.include({ documentId: recordId, chunks, status: "indexed" });
      },
    });

  const setTitle = async (documentId: string, title: string) => {
    const set = await owner.request("PATCH", `/rag/documents/${documentId}`, { body: { title } });
    expect(set.status, set.text).to.equal(200);
  };

  /** The document is indexed as one version, nothing else is left of it, and it is counted once. */
  const expectWhole = async (documentId: string, when: string): Promise<number> => {
    const { collection, text } = known.get(documentId) ?? { collection: "", text: "" };
    const { status, chunks, error } = (await owner.get(`/rag/documents/${documentId}`)).body as {
      status: string;
      chunks: number;
      error?: object;
    };
    expect([status, error], when).to.deep.equal(["indexed", undefined]);
    const parts = (await owner.get(`/rag/documents/${documentId}/chunks`)).at("data") as Hit[];
    for (const { content } of parts) expect(content, when).to.include(text);
    expect(await countStored(documentId), `chunks of all versions, ${when}`).to.equal(chunks);
    const found = await owner.post("/rag/query", { query: parts[0]?.content, collection, topK });
    const hits = (found.at("results") as Hit[]).filter((hit) => hit.documentId === documentId);
    const contents = hits.map(({ content }) => content);
    expect(contents, when).to.include(parts[0]?.content);
    expect(new Set(contents).size, `found twice, ${when}`).to.equal(contents.length);
    await expectCounted(collection, when);
    return chunks;
  };
  const countStored = async (documentId: string) => {
    const { store } = test.platform;
    const { lastVersion = 0 } = (await store.documents.get(tenantId, documentId)) ?? {};
    const versions = Array.from({ length: lastVersion + 1 }, (_, version) => version);
    return sum(await Promise.all(versions.map((version) => store.chunks.count(tenantId, { documentId, version }))));
  };
  const expectCounted = async (collection: string, when: string) => {
    const { store, quotas } = test.platform;
    const here = [...known].filter(([, one]) => one.collection === collection);
    const records = await Promise.all(here.map(([documentId]) => store.documents.get(tenantId, documentId)));
    const { data } = (await owner.get("/rag/collections")).body as { data: Total[] };
    expect(
      data.find(({ name }) => name === collection),
      when,
    ).to.include({
      documents: here.length,
      unfinished: 0,
      chunks: sum(records.map((record) => record?.chunks ?? 0)),
      bytes: sum(here.map(([, { bytes }]) => bytes)),
    });
    const { documents, storedBytes } = await quotas.usage(tenantId);
    const bytes = sum([...known.values()].map((one) => one.bytes));
    expect([documents.used, storedBytes.used], when).to.deep.equal([known.size, bytes]);
  };

  it("has the chunks of one version when it is new", async () => {
    let round = 0;
    const commands = await race(() => {
      round += 1;
      const text = `Lease ${round} is a claim.`;
      return ingestText("new", { content: `${text} `.repeat(100), text });
    });
    expect(commands).to.be.at.least(5);
  });

  it("has the chunks of one version when it is replaced", async () => {
    let round = 0;
    const replace = () => {
      round += 1;
      const text = `Lease ${round} is a claim.`;
      return ingestText("replaced", { content: `${text} `.repeat(100), text, externalId: "lease" });
    };
    await test.platform.rag.work.run(workContext(test, await replace()));
    expect(await race(replace)).to.be.at.least(12);
  });

  it("has the chunks of one version when they are written in several turns", async () => {
    let round = 0;
    const commands = await race(() => {
      round += 1;
      const text = `Lease ${round} is a claim.`;
      const content = Array.from({ length: large }, (_, n) => `# Berth ${n}\n\n${text}`).join("\n\n");
      return ingestText("large", { content, text, externalId: `lease-${round % 2}` });
    }, 23);
    expect(commands).to.be.above(40);
  });

  it("keeps the title that it is given meanwhile", async () => {
    const titles: string[] = [];
    let round = 0;
    const commands = await raceWorkers({
      test,
      begin: () => {
        round += 1;
        const text = `Lease ${round} is a claim.`;
        const content = `${text} `.repeat(50);
        const title = round % 2 === 0 ? { title: "Its first title" } : {};
        return ingest({ content, ...title }, { collection: "titled", text, bytes: Buffer.byteLength(content) });
      },
      work: (platform) => ({
        ...platform.rag.work,
        run: async (context) => {
          if (platform === test.platform) return platform.rag.work.run(context);
          return setTitle(context.recordId, "Its last title");
        },
      }),
      check: async ({ recordId }, _ends, at) => {
        await expectWhole(recordId, `frozen at ${at}`);
        const { title } = (await test.platform.store.documents.get(tenantId, recordId)) ?? {};
        titles.push(title ?? "");
      },
    });
    expect(commands).to.be.at.least(5);
    expect(titles.slice(0, -1)).to.deep.equal(Array(commands).fill("Its last title")); // in the last race, none was frozen
  });

  it("has the chunks of one version when its URL is read again", async () => {
    let round = 0;
    const put = () => {
      round += 1;
      const text = `Lease ${round} is a claim.`;
      site.put("/lease", { body: `${text} `.repeat(100), headers: { etag: `"${round}"` } });
      return { collection: "pages", text, bytes: 0 };
    };
    const { recordId, ...first } = await ingest({ url: `${site.origin}/lease` }, put());
    await test.platform.rag.work.run(workContext(test, { recordId, ...first }));
    const commands = await race(async () => {
      known.set(recordId, put());
      const accepted = await owner.post(`/rag/documents/${recordId}/refresh`, {}, later);
      expect(accepted.status, accepted.text).to.equal(202);
      return { ...first, recordId, jobId: accepted.string("jobId") };
    });
    expect(commands).to.be.at.least(8);
  });
});
