import { expect } from "chai";
import OpenAI from "openai";
import type { Response, ResponseStreamEvent } from "openai/resources/responses/responses";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type HostProcess, startProcess } from "../support/processes.ts";
import { skipTest } from "../support/skip-test.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { startToolServer, type ToolServer } from "../support/tool-server.ts";
import { seededRandom } from "../trials/bench/measure.ts";

const tenantCount = 5;
const responseCount = 200;
/** Chooses the workers that are killed. */
const seed = 7;
const model = "small";
const pieces = Array.from({ length: 25 }, (_, n) => `word${n} `);
const text = pieces.join("");
const endTypes = ["response.completed", "response.incomplete"];

/** These are cancelled in the queue, or as soon as they run; others later. */
const isCancelledAtOnce = (n: number) => n % 20 === 19;

type Made = {
  id: string;
  openai: { doomed: OpenAI; other: OpenAI };
  tenant: number;
  isStreamed: boolean;
  /** What its reader received, over a break of the connection. */
  events: Promise<ResponseStreamEvent[]>;
};

describe("responses in the background while things break", function () {
  this.timeout(240_000);
  const random = seededRandom(seed);
  const processes: HostProcess[] = [];
  /** How the responses were that were cancelled, as the calls returned. */
  const cancels = new Map<string, Response["status"]>();
  let upstream: FakeProvider;
  let site: ToolServer;
  let test: TestPlatform;
  before(async function () {
    if (process.env.REDIS_URL) return skipTest(this, "it empties Redis");
    upstream = await startFakeProvider();
    site = await startToolServer();
    upstream.setDefault({ pieces, pieceMs: 100 });
    test = await startPlatform({
      services: "private",
      workers: false,
      env: {
        EDGE_BASE_URL: upstream.url,
        EDGE_MODEL: model,
        FETCH_ALLOW_ORIGINS: site.origin,
        JOB_LEASE_MS: "1000",
        RECONCILE_EVERY_MS: "300",
      },
    });
  });
  after(async () => {
    await Promise.all(processes.map((one) => one.kill()));
    await test?.close();
    await upstream?.close();
    await site?.close();
  });
  const start = async (script: "api/server.ts" | "workers/main.ts") => {
    const one = await startProcess(script, test.env);
    processes.push(one);
    return one;
  };

  it("end once each, and are streamed without a lost or repeated event", async () => {
    site.on("/told", (_, response) => void response.writeHead(204).end());
    const { tenancy } = test.platform;
    const workers = await Promise.all(Array.from({ length: 3 }, () => start("workers/main.ts")));
    const doomed = await start("api/server.ts");
    const keys = await Promise.all(
      Array.from({ length: tenantCount }, async (_, n) => {
        const tenantId = await tenancy.ensureTenant(`tenant ${n}`);
        return (await tenancy.createKey({ tenantId, role: "member", subject: "ann@test" })).key;
      }),
    );
    const clients = keys.map((apiKey) => ({
      doomed: new OpenAI({ baseURL: `${doomed.ready.url}/v1`, apiKey, maxRetries: 0 }),
      other: new OpenAI({ baseURL: `${test.url}/v1`, apiKey, maxRetries: 0 }),
    }));
    for (const { doomed, other } of clients) for (const openai of [doomed, other]) await openai.models.list(); // its key is known then
    const made = await Promise.all(
      Array.from({ length: responseCount }, (_, n) => {
        const tenant = n % tenantCount;
        const openai = clients[tenant] ?? expect.fail("there is no such tenant");
        return make({ openai, tenant, n, isStreamed: n % 4 === 0 });
      }),
    );
    await untilEnded(made, 20);
    await workers.splice(Math.floor(random() * workers.length), 1)[0]?.kill();
    await test.platform.redis.producer.flushall();
    await untilEnded(made, 60);
    await doomed.kill();
    for (const one of made.filter((_, n) => n > 150 && n % 10 === 4)) await cancel(one);
    await untilEnded(made, 100);
    await workers.splice(Math.floor(random() * workers.length), 1)[0]?.kill();
    await start("workers/main.ts");
    const responses = await untilEnded(made, responseCount);

    for (const { id, status, output_text: said } of responses) {
      const end = cancels.get(id) ?? "completed"; // one that had ended stays as it is
      expect([status, said]).to.deep.equal([end, end === "cancelled" ? "" : text]);
    }
    const statuses = responses.map(({ status }) => status);
    expect(statuses.filter((status) => status === "cancelled").length).to.be.above(2);
    for (const one of made.filter(({ isStreamed }) => isStreamed)) await checkStream(one);
    for (const [tenant, key] of keys.entries()) {
      const client = makeClient({ url: test.url, key });
      const jobs = (await client.get("/jobs?kind=response&limit=200")).at("data") as { status: string }[];
      const own = made.flatMap((one, n) => (one.tenant === tenant ? [statuses[n]] : []));
      await pollUntil(async () => (await client.get("/jobs?status=running")).at("data.length") === 0);
      expect(jobs, "a job for each response").to.have.lengthOf(own.length);
      const foreign = made.find((one) => one.tenant !== tenant)?.id;
      expect((await client.get(`/v1/responses/${foreign}`)).status).to.equal(404);
    }
    const reported = await pollUntil(
      () => {
        const messages = site.requests.map(({ body }) => JSON.parse(body) as { type: string; data: { id: string } });
        const byId = new Map(messages.map((message) => [message.data.id, message]));
        return byId.size === responseCount ? byId : null;
      },
      { timeoutMs: 60_000, what: "the messages to callbacks" },
    );
    for (const { id, status } of responses) expect(reported.get(id)?.type).to.equal(`response.${status}`);
  });

  async function cancel({ id, openai }: Pick<Made, "id" | "openai">): Promise<void> {
    cancels.set(id, (await openai.other.responses.cancel(id)).status);
  }

  type Making = Pick<Made, "openai" | "tenant" | "isStreamed"> & { n: number };

  async function make({ openai, tenant, n, isStreamed }: Making): Promise<Made> {
    const callback = { url: `${site.origin}/told` };
    const request = { model, input: `Question ${n}?`, background: true, callback };
    if (!isStreamed) {
      const { id } = await openai.doomed.responses.create(request);
      if (isCancelledAtOnce(n)) await cancel({ id, openai });
      return { id, openai, tenant, isStreamed, events: Promise.resolve([]) };
    }
    const stream = await openai.doomed.responses.create({ ...request, stream: true });
    const { promise: begun, resolve: onBegun } = Promise.withResolvers<string>();
    const events = readAll(openai.other, stream, onBegun);
    return { id: await begun, openai, tenant, isStreamed, events };
  }

  /** Reads a stream to its end, and where it breaks goes on at the other API. */
  async function readAll(other: OpenAI, stream: AsyncIterable<ResponseStreamEvent>, onBegun: (id: string) => void) {
    const events: ResponseStreamEvent[] = [];
    let source = stream;
    let id = "";
    for (;;) {
      try {
        for await (const event of source) {
          events.push(event);
          if (event.type !== "response.created") continue;
          id = event.response.id;
          onBegun(id);
        }
        if (endTypes.includes(events.at(-1)?.type ?? "")) return events;
      } catch (error) {
        if (id === "") throw error;
      }
      source = await other.responses.retrieve(id, { stream: true, starting_after: events.length - 1 });
    }
  }

  async function untilEnded(made: readonly Made[], count: number): Promise<Response[]> {
    return pollUntil(
      async () => {
        const all = await Promise.all(made.map(({ id, openai }) => openai.other.responses.retrieve(id)));
        const open = all.filter(({ status }) => status === "queued" || status === "in_progress");
        return all.length - open.length >= count ? all : null;
      },
      { timeoutMs: 120_000, everyMs: 500, what: `the end of ${count} responses` },
    );
  }

  async function checkStream({ id, openai, events: reading }: Made): Promise<void> {
    const events = await reading;
    expect(events.map(({ sequence_number: number }) => number)).to.deep.equal(events.map((_, n) => n));
    expect(events.filter(({ type }) => endTypes.includes(type))).to.have.lengthOf(1);
    const replay = await Array.fromAsync(await openai.other.responses.retrieve(id, { stream: true }));
    expect(replay).to.deep.equal(events);
    const gathered = await openai.other.responses.stream({ response_id: id }).finalResponse();
    const { status, output_text: said } = await openai.other.responses.retrieve(id);
    expect([gathered.status, gathered.output_text]).to.deep.equal([status, said]);
  }
});
