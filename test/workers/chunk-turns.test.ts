import { expect } from "chai";
import { makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";
import { workContext } from "../support/work-context.ts";

/** Most chunks that one turn may write or show: some milliseconds of the embedded store. */
const CHUNKS_A_TURN = 20;

/** No worker runs here: the job is run by hand, so that its turns can be counted. */
describe("the chunks of a large document", () => {
  let test: TestPlatform;
  before(async () => {
    test = await startPlatform({ workers: false });
  });
  after(() => test.close());

  it("are written and shown in several turns, between which others have theirs", async () => {
    const client = makeClient({ url: test.url, key: test.keys.member });
    const content = Array.from({ length: 60_000 }, (_, n) => `Valve ${n}.`).join(" ");
    const accepted = await client.post("/rag/ingest", { content }, { headers: { prefer: "respond-async" } });
    const [documentId, jobId] = [accepted.string("documentId"), accepted.string("jobId")];
    let turns = 0;
    const share = <T>(part: () => Promise<T>) => {
      turns += 1;
      return part();
    };
    const tenantId = await tenantOf(test);
    await test.platform.rag.work.run(workContext(test, { tenantId, recordId: documentId, jobId, share }));
    const document = await client.get(`/rag/documents/${documentId}`);
    expect(document.at("status")).to.equal("indexed");
    const chunks = Number(document.at("chunks"));
    expect(chunks).to.be.above(300);
    expect(turns).to.be.at.least((2 * chunks) / CHUNKS_A_TURN);
  });
});
