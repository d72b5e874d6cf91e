import { expect } from "chai";
import { serveApi } from "../../api/server.ts";
import { startFakeProvider } from "../support/fake-provider/server.ts";
import { makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

describe("an API that stops", function () {
  this.timeout(60_000);
  let test: TestPlatform;
  let provider: Awaited<ReturnType<typeof startFakeProvider>>;

  before(async () => {
    provider = await startFakeProvider();
    test = await startPlatform({
      workers: false, // the job that is watched does not end
      // Far longer than the test may take: nothing here ends because it is cut.
      env: { OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: provider.url, SHUTDOWN_GRACE_MS: "600000" },
    });
  });
  after(async () => {
    await test?.close();
    await provider?.close();
  });

  it("ends streams that watch at once, and lets a chat end first", async () => {
    const api = await serveApi(test.platform);
    const client = makeClient({ url: api.url, key: test.keys.member });
    const order: string[] = [];
    const job = await client.post("/rag/ingest", { content: "A text." }, { headers: { prefer: "respond-async" } });
    const release = Promise.withResolvers<void>();
    provider.next({ pieces: ["Hello ", "world."], hold: { afterPieces: 1, until: release.promise } });
    const body = { model: "gpt-5.4-mini", messages: [{ role: "user", content: "Hello?" }], stream: true };
    const chat = await client.events("POST", "/ai/chat", { body });
    const first = await chat.events.next();
    expect(JSON.stringify(first.value)).to.include("Hello ");
    const watching = ["/jobs/events", `/jobs/${job.string("jobId")}/events`].map(async (path) => {
      const { events } = await client.events("GET", path);
      return { path, events };
    });
    const watched = (await Promise.all(watching)).map(async ({ path, events }) => {
      for await (const _ of events);
      order.push(path);
    });
    const closed = api.close().then(() => order.push("closed"));
    await Promise.all(watched);
    expect(order).to.have.members(["/jobs/events", `/jobs/${job.string("jobId")}/events`]);
    release.resolve();
    const rest: string[] = [];
    for await (const { data } of chat.events) rest.push(JSON.stringify(data));
    expect(rest.join("")).to.include("world.").and.include('"done":true');
    await closed;
    expect(order.at(-1)).to.equal("closed");
  });
});
