import { expect } from "chai";
import type { WorkContext } from "../../src/jobs/work.ts";
import type { Platform } from "../../src/platform.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, type ApiResponse, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { outcomeOf, raceWorkers } from "../support/race-workers.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";
import { workContext } from "../support/work-context.ts";

type Begun = Pick<WorkContext, "tenantId" | "recordId" | "jobId" | "isLastAttempt">;
type Item = { status: string; content: { text: string }[] };
type Event = {
  type: string;
  sequence_number: number;
  delta?: string;
  output_index?: number;
  item?: Item;
  response?: { status: string; output: Item[] };
};

const path = "/v1/responses";
const model = "claude-haiku-5-5";
const shortInput = "What does a lease protect?";
const longInput = "What does a lease protect, at length?";
/** Characters of a part; after two of them the events so far are written. */
const LONG_PART = 140_000;
/** Turns that a response needs at most after a race. */
const MAX_TURNS = 5;

describe("a response in the background that two workers make at once", () => {
  let upstream: FakeProvider;
  let test: TestPlatform;
  let client: ApiClient;
  let tenantId: string;
  let doesFail = false;
  before(async () => {
    upstream = await startFakeProvider();
    const env = {
      ANTHROPIC_API_KEY: "sk-ant-platform-0123456789",
      ANTHROPIC_BASE_URL: upstream.origin,
      PROVIDER_MAX_ATTEMPTS: "1",
    };
    test = await startPlatform({ workers: false, env });
    client = makeClient({ url: test.url, key: test.keys.member });
    tenantId = await tenantOf(test);
    // Each answer has a number of its own, which is in all of its parts. After long ones the events so far are written.
    upstream.setDefault(({ messages }) => {
      if (doesFail) return { status: 400 };
      const number = upstream.requests.length + 1;
      const isLong = JSON.stringify(messages).includes(longInput);
      const more = isLong ? ".".repeat(LONG_PART) : "";
      const pieces = [`${number} of a ${more}`, `${number} lease ${more}`, `${number} end`];
      return { pieces, ...(isLong ? { pieceMs: 5 } : {}) };
    });
  });
  after(async () => {
    await test?.close();
    await upstream.close();
  });

  const work = ({ works }: Platform) => works.find(({ idField }) => idField === "responseId") ?? expect.fail("no work");
  /** Accepts responses, which no worker makes. A failure would be the end of them, as in the last attempt of their jobs. */
  const starter =
    ({ stream, input = shortInput }: { stream: boolean; input?: string }) =>
    async (): Promise<Begun> => {
      const body = { model, input, background: true };
      if (stream) {
        const { events } = await client.events("POST", path, { body: { ...body, stream } });
        void events.return(undefined);
      } else {
        const accepted = await client.post(path, body);
        expect([accepted.status, accepted.at("status")], accepted.text).to.deep.equal([200, "queued"]);
      }
      const before = new Date(Date.now() + 60_000);
      const [open, ...more] = await test.platform.store.responses.unfinished({ before, limit: 10 });
      expect(more, "others that have not ended").to.deep.equal([]);
      const { _id: recordId, jobId } = open ?? expect.fail("there is no open response");
      return { tenantId, recordId, jobId, isLastAttempt: true };
    };
  /** Lets a single worker go on with a response until it ends; what that says. */
  const goOn = async (begun: Begun) => {
    for (let turn = 0; turn < MAX_TURNS; turn += 1) {
      const end = await work(test.platform)
        .run(workContext(test, begun))
        .catch((error: unknown) => error);
      if (outcomeOf(end) !== "release") return end;
    }
    return expect.fail(`the response needs more than ${MAX_TURNS} turns`);
  };
  const expectPeace = (ends: object, at: number) => {
    for (const [name, end] of Object.entries(ends))
      expect(["completed", "release"], `${name}, frozen at ${at}: ${end}`).to.include(outcomeOf(end));
  };
  const expectWhole = (items: readonly Item[] | undefined, at: number) => {
    expect(
      items?.map(({ status }) => status),
      `frozen at ${at}`,
    ).to.deep.equal(["completed"]);
    expect(items?.[0]?.content[0]?.text, `frozen at ${at}`).to.match(/^(\d+) of a \.*\1 lease \.*\1 end$/);
  };
  /** The response as the API shows it, which has ended with the whole text of one answer. */
  const expectCompleted = async ({ recordId }: Begun, at: number) => {
    const response = await client.get(`${path}/${recordId}`);
    expect(response.at("status"), `frozen at ${at}`).to.equal("completed");
    expectWhole(response.at("output") as Item[], at);
    expect(response.at("usage")).to.include({ input_tokens: 11, output_tokens: 7 });
    return response;
  };
  const eventsOf = async ({ recordId }: Begun, after?: number) => {
    const from = after === undefined ? "" : `&starting_after=${after}`;
    const { events } = await client.events("GET", `${path}/${recordId}?stream=true${from}`);
    return (await Array.fromAsync(events)).map(({ data }) => data as Event);
  };
  /** Every answer that the model has given is charged, and none twice. */
  const expectCharged = async () => {
    const used = async () => {
      await test.platform.gateway.flush();
      return (await client.get("/usage")).at("total") as {
        requests: number;
        inputTokens: number;
        outputTokens: number;
      };
    };
    const { requests, inputTokens } = upstream.served();
    await pollUntil(async () => (await used()).requests >= requests, { what: "the charge of the last answer" });
    expect(await used()).to.include({ requests, inputTokens });
    return used();
  };

  /** The recorded events are those of one response, whose last one shows it as it is read. */
  const expectEvents = async (begun: Begun, response: ApiResponse, at: number) => {
    const events = await eventsOf(begun);
    expect(
      events.map(({ sequence_number: number }) => number),
      `frozen at ${at}`,
    ).to.deep.equal(events.map((_, n) => n));
    const ofResponse = events.filter((event) => event.response && event.type !== "response.in_progress");
    const types = ["response.created", "response.queued", `response.${response.string("status")}`];
    expect(ofResponse.map(({ type }) => type)).to.deep.equal(types);
    expect(events.at(-1)?.response, `frozen at ${at}`).to.deep.equal(response.body);
    // Each item ends once, and its parts are those of its text. One that was cut is ended as incomplete.
    const ended = events.filter(({ type }) => type === "response.output_item.done");
    for (const [index, { item, output_index }] of ended.entries()) {
      expect(output_index).to.equal(index);
      const parts = events.filter((event) => event.output_index === index && event.type.endsWith("text.delta"));
      expect(parts.map(({ delta }) => delta).join("") === item?.content[0]?.text, `frozen at ${at}`).to.equal(true);
    }
    const whole = ended.flatMap(({ item }) => (item?.status === "completed" ? [item] : []));
    return { events, whole };
  };

  it("is completed once, wherever one is frozen", async () => {
    const commands = await raceWorkers<Begun>({
      ...{ test, begin: starter({ stream: false }), work },
      check: async (begun, ends, at) => {
        expectPeace(ends, at);
        expect(await goOn(begun)).to.deep.equal({ responseId: begun.recordId, status: "completed" });
        await expectCompleted(begun, at);
        expect(await expectCharged()).to.include({ outputTokens: upstream.served().outputTokens });
      },
    });
    expect(commands).to.be.above(2);
  });

  it("streams one answer, wherever one is frozen", async () => {
    const commands = await raceWorkers<Begun>({
      ...{ test, begin: starter({ stream: true }), work },
      check: async (begun, ends, at) => {
        expectPeace(ends, at);
        expect(await goOn(begun)).to.deep.equal({ responseId: begun.recordId, status: "completed" });
        const { events, whole } = await expectEvents(begun, await expectCompleted(begun, at), at);
        expectWhole(whole, at);
        for (const after of [0, 3, events.length - 2, events.length - 1])
          expect(await eventsOf(begun, after), `after ${after}`).to.deep.equal(events.slice(after + 1));
        await expectCharged();
      },
    });
    expect(commands).to.be.above(4);
  });

  it("ends what one has said before it was frozen, and streams the other's answer", async () => {
    const commands = await raceWorkers<Begun>({
      ...{ test, begin: starter({ stream: true, input: longInput }), work },
      check: async (begun, ends, at) => {
        expectPeace(ends, at);
        expect(await goOn(begun)).to.deep.equal({ responseId: begun.recordId, status: "completed" });
        const { whole } = await expectEvents(begun, await expectCompleted(begun, at), at);
        expectWhole(whole, at);
        await expectCharged();
      },
    });
    expect(commands).to.be.above(5);
  });

  for (const stream of [false, true]) {
    it(`ends as the first of both says${stream ? ", streamed" : ""}, and so does its job, where the frozen one fails`, async () => {
      const states = new Set<unknown>();
      await raceWorkers<Begun>({
        ...{ test, begin: starter({ stream }) },
        work: (platform) => {
          const run = async (context: WorkContext) => {
            doesFail = platform === test.platform;
            return work(platform)
              .run(context)
              .finally(() => {
                doesFail = true;
              });
          };
          return { ...work(platform), run };
        },
        check: async (begun, ends, at) => {
          doesFail = false;
          const response = await client.get(`${path}/${begun.recordId}`);
          const status = response.at("status");
          states.add(status);
          for (const end of [await goOn(begun), ends.other ?? ends.frozen])
            if (status === "completed") expect(end, `frozen at ${at}`).to.include({ status });
            else
              expect(end, `frozen at ${at}`)
                .to.have.property("message")
                .that.matches(/^The provider rejected/);
          if (stream) await expectEvents(begun, response, at);
          await expectCharged();
        },
      });
      expect(states).to.have.keys("completed", "failed");
    });
  }
});
