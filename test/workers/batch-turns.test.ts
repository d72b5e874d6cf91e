import { expect } from "chai";
import OpenAI, { toFile } from "openai";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";
import { workContext } from "../support/work-context.ts";

/** Most requests of a file that are in memory, and made jobs of, in one turn. */
const AT_ONCE = 16;

/** No worker runs here: the job is run by hand, so that its turns can be counted, or do not come. */
describe("the requests of a large file", () => {
  let test: TestPlatform;
  let openai: OpenAI;
  before(async () => {
    test = await startPlatform({ workers: false });
    openai = new OpenAI({ baseURL: `${test.url}/v1`, apiKey: test.keys.member, maxRetries: 0 });
  });
  after(() => test.close());

  const begin = async (count: number, padding = "") => {
    const url = "/v1/chat/completions";
    const body = { model: "switchyard-offline", messages: [{ role: "user", content: "Hello." }] };
    const lines = Array.from({ length: count }, (_, n) =>
      JSON.stringify({ custom_id: `${n}`, method: "POST", url, body, padding }),
    );
    const file = await openai.files.create({
      purpose: "batch",
      file: await toFile(Buffer.from(lines.join("\n")), "a.jsonl"),
    });
    const { id } = await openai.batches.create({ input_file_id: file.id, endpoint: url, completion_window: "24h" });
    const tenantId = await tenantOf(test);
    const jobId = (await test.platform.store.files.findBatch(tenantId, id))?.jobId ?? "";
    let open = await test.platform.store.jobs.countOpen(tenantId, 1_000);
    const turns: number[] = [];
    const share = async <T>(part: () => Promise<T>): Promise<T> => {
      const done = await part();
      const now = await test.platform.store.jobs.countOpen(tenantId, 1_000);
      if (now > open) turns.push(now - open); // what reads lines, and looks for their jobs, has turns too
      open = now;
      return done;
    };
    const run = (given: Partial<Parameters<typeof workContext>[1]> = {}) =>
      test.platform.batches.files.work
        .run(workContext(test, { tenantId, recordId: id, jobId, share, ...given }))
        .catch((thrown: unknown) => thrown);
    return { id, run, turns };
  };

  it("become jobs a few at a time, between which others have their turn", async () => {
    const { id, run, turns } = await begin(40);
    await run();
    expect(turns).to.deep.equal([AT_ONCE, AT_ONCE, 8]);
    expect((await openai.batches.retrieve(id)).status).to.equal("in_progress");
  });

  it("are fewer at a time where they are long", async () => {
    const { run, turns } = await begin(5, "x".repeat(600_000));
    await run();
    expect(turns).to.deep.equal([2, 2, 1]);
  });

  it("are read no further than their turns come", async () => {
    const { run, turns } = await begin(40);
    const stopped = new Error("The worker stops.");
    expect(await run({ share: () => Promise.reject(stopped) })).to.equal(stopped);
    await run();
    expect(turns, "none had been made").to.deep.equal([AT_ONCE, AT_ONCE, 8]);
  });
});
