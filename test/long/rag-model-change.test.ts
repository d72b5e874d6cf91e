import { expect } from "chai";
import { type EmbeddingServer, startEmbeddingServer, toCustomProvider } from "../support/embedding-server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type HostProcess, startProcess } from "../support/processes.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const small = 24;
/** Chunks of one document that has several, as its text is split. */
const paragraphs = 60;
const topK = 80; // more than there are chunks: every answer must have them all
const textOf = (n: number) => `Ferry ${n} crosses the sound at minute ${n * 3 + 1}, with ${n + 40} seats.`;
const paragraphOf = (n: number) =>
  Array.from({ length: 12 }, (_, line) => `Quay ${n}, berth ${line}, is ${n * 31 + line} fathoms from the light.`).join(
    " ",
  );

describe("a change of the embedding model under a load of queries", function () {
  this.timeout(180_000);
  let server: EmbeddingServer;
  let test: TestPlatform;
  let admin: ApiClient;
  let expected = 0;
  const workers: HostProcess[] = [];

  before(async () => {
    server = await startEmbeddingServer();
    test = await startPlatform({
      workers: false,
      env: {
        FETCH_ALLOW_ORIGINS: new URL(server.url).origin,
        JOB_LEASE_MS: "1500",
        RECONCILE_EVERY_MS: "300",
      },
    });
    admin = makeClient({ url: test.url, key: test.keys.admin });
    const provider = toCustomProvider(server, ["dense-256", "dense-1024", "dense-1536"]);
    const added = await admin.request("PUT", "/ai/providers/custom/lab", { body: provider });
    expect(added.status, added.text).to.be.oneOf([200, 201]);
    await setModel("lab/dense-256");
    await startWorker();
    await Promise.all(Array.from({ length: small }, (_, n) => ingest(textOf(n))));
    const text = Array.from({ length: paragraphs }, (_, n) => paragraphOf(n)).join("\n\n");
    expected = small + (await ingest(text));
    expect(expected).to.be.within(small + 10, topK);
  });
  after(async () => {
    await Promise.all(workers.map((worker) => worker.kill()));
    await test.close();
    await server.close();
  });

  const startWorker = async () => {
    const worker = await startProcess("workers/main.ts", test.env);
    workers.push(worker);
    return worker;
  };
  const ingest = async (content: string) => {
    const answer = await admin.post("/rag/ingest", { content }, { headers: { prefer: "wait=120" } });
    expect(answer.status, answer.text).to.equal(201);
    return Number(answer.at("chunks"));
  };
  const setModel = async (embeddingModel: string) => {
    const set = await admin.request("PUT", "/rag/settings", { body: { embeddingModel } });
    expect(set.status, set.text).to.equal(200);
  };
  const modelsInUse = async () =>
    (await admin.get("/rag/settings")).at("models") as { model: string; documents: number }[];
  const isPassage = (text: string) => /^(Ferry|Quay)/.test(text);
  /** What the ledger has of each model's embeddings. */
  const ledger = async () => {
    const rows = (await admin.get("/usage?groupBy=model")).at("data") as {
      model: string;
      requests: number;
      inputTokens: number;
    }[];
    return new Map(rows.map((row) => [row.model, { requests: row.requests, inputTokens: row.inputTokens }]));
  };
  const servedBy = (model: string) => {
    const calls = server.answered.filter((one) => `lab/${one.model}` === model);
    const words = calls.flatMap(({ texts }) => texts).map((text) => text.split(/\s+/).length);
    return { requests: calls.length, inputTokens: words.reduce((sum, one) => sum + one, 0) };
  };
  const expectLedger = async () => {
    for (const model of ["lab/dense-256", "lab/dense-1024", "lab/dense-1536"])
      await pollUntil(
        async () =>
          JSON.stringify((await ledger()).get(model) ?? { requests: 0, inputTokens: 0 }) ===
          JSON.stringify(servedBy(model)),
        {
          what: `the ledger of ${model}: ${JSON.stringify(servedBy(model))}`,
        },
      );
  };

  /** What is wrong with results that must hold every short document once, and every part of the long one. */
  const faultOf = (results: readonly { content: string }[]): string => {
    const contents = results.map(({ content }) => content);
    const all = contents.join("\n");
    const times = Array.from({ length: small }, (_, n) => contents.filter((content) => content === textOf(n)).length);
    const parts = Array.from({ length: paragraphs }, (_, n) => all.includes(`Quay ${n}, berth 0,`));
    const isWhole = times.every((count) => count === 1) && parts.every((isThere) => isThere);
    return isWhole
      ? ""
      : `short ones ${times.join("")}, ${parts.filter((isThere) => isThere).length} of ${paragraphs} parts`;
  };

  /** Queries without a pause until it is stopped; each answer must have every chunk, each once. */
  const startLoad = () => {
    let isOver = false;
    let answers = 0;
    const faults: string[] = [];
    const run = async (mode: string) => {
      for (let n = 0; !isOver; n += 1) {
        const found = await admin.post("/rag/query", { query: `Which of them is number ${n % 5}?`, mode, topK });
        const { results = [], warnings } = found.body as {
          results?: { documentId: string; content: string }[];
          warnings?: string[];
        };
        const fault = faultOf(results);
        answers += 1;
        if (found.status !== 200 || fault !== "" || warnings !== undefined)
          faults.push(`${mode}: ${found.status}, ${fault}, ${String(warnings)}`);
      }
    };
    const running = Promise.all([run("vector"), run("vector"), run("hybrid")]);
    return {
      /** Waits for some more answers. */
      untilMore: async (more: number) => {
        const wanted = answers + more;
        await pollUntil(async () => answers >= wanted, { timeoutMs: 60_000, what: "answers" });
      },
      stop: async () => {
        isOver = true;
        await running;
        return { answers, faults };
      },
    };
  };

  it("hides no document and doubles none, also when its worker is killed in the middle; each embedding costs once", async () => {
    const load = startLoad();
    await load.untilMore(10);
    await setModel("lab/dense-1024");
    await load.untilMore(10);
    // Some documents are moved, then no answer comes, until the worker is dead.
    let moved = 0;
    const { promise: arrived, resolve: isHeld } = Promise.withResolvers<void>();
    const { promise: gate, resolve: letGo } = Promise.withResolvers<void>();
    server.onRequest(({ model, texts }) => {
      if (model !== "dense-1024" || !texts.some(isPassage)) return undefined;
      moved += 1;
      if (moved <= 8) return undefined;
      isHeld();
      return gate;
    });
    const accepted = await admin.post("/rag/reindex", {}, { headers: { prefer: "respond-async" } });
    expect(accepted.status, accepted.text).to.equal(202);
    const jobId = accepted.string("jobId");
    await arrived;
    await load.untilMore(10);
    await expectLedger(); // what was answered is written down, and nothing else is on its way
    await workers.pop()?.kill();
    server.onRequest(() => undefined);
    letGo();
    const halfway = await modelsInUse();
    expect(halfway.map(({ model }) => model)).to.deep.equal(["lab/dense-1024", "lab/dense-256"]);
    await load.untilMore(10);
    await startWorker();
    const job = () => admin.get(`/jobs/${jobId}`);
    await pollUntil(async () => (await job()).at("status") === "completed", {
      timeoutMs: 60_000,
      what: "the job's end",
    });
    expect((await job()).body).to.deep.include({
      attempts: 2,
      result: { model: "lab/dense-1024", moved: small + 1, left: 0 },
    });
    await setModel("lab/dense-1536");
    const next = await admin.post("/rag/reindex", {}, { headers: { prefer: "wait=60" } });
    expect(next.body).to.deep.equal({ model: "lab/dense-1536", moved: small + 1, left: 0 });
    await load.untilMore(10);
    const { answers, faults } = await load.stop();
    expect(faults.length, `of ${answers} answers; ${faults.slice(0, 5).join("; ")}`).to.equal(0);
    expect(await modelsInUse()).to.deep.equal([
      { model: "lab/dense-1536", dimensions: 1_536, documents: small + 1, isPresent: true },
    ]);
    for (const model of ["dense-256", "dense-1024", "dense-1536"]) {
      const passages = server.textsOf(model).filter(isPassage);
      expect(passages, `passages that ${model} embedded`).to.have.lengthOf(expected);
      expect(new Set(passages).size).to.equal(expected);
    }
    await expectLedger();
  });
});
