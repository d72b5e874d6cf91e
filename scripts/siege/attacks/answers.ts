import { type Attack, flood } from "../attack.ts";

const LARGE_STEPS = 4;

/** Attacks by what the product is made to answer, or to keep. */
export const answerAttacks: readonly Attack[] = [
  {
    name: "batch-of-messages",
    about: "a batch of two million messages to the tool server",
    async run({ member, signal }) {
      const body = `[{"jsonrpc":"2.0","id":1,"method":"ping"}${",0".repeat(1_990_000)}]`;
      const headers = { "content-type": "application/json" };
      await flood(signal, 4, () => member.call("POST", "/mcp", { body, headers }));
    },
  },
  {
    name: "lists-of-large-things",
    about: "lists of 200 workflows, each as large as it may be",
    async prepare({ member }) {
      for (const size of [240_000, 60_000]) {
        const prompt = "p".repeat(size / LARGE_STEPS);
        const steps = Array.from({ length: LARGE_STEPS }, () => ({ type: "ai_completion", model: "meta-llm", prompt }));
        for (let n = 0; n < 200; n += 1)
          await member.call("POST", "/workflows", { json: { name: `large ${n}`, steps } });
      }
    },
    run: ({ member, signal }) => flood(signal, 8, () => member.call("GET", "/workflows?limit=200")),
  },
  {
    name: "kept-answers",
    about: "idempotent answers of a megabyte each",
    async run({ member, signal }) {
      const json = { input: Array.from({ length: 64 }, () => "word ".repeat(20)), dimensions: 512 };
      await flood(signal, 4, (turn) =>
        member.call("POST", "/ai/embeddings", { json, headers: { "idempotency-key": `kept-${turn}` } }),
      );
    },
  },
  {
    name: "open-streams",
    about: "as many streams of a job's events as one key can open",
    async run({ member, signal }) {
      const { text } = await member.call("POST", "/rag/ingest", { json: { content: "A page." } });
      const { jobId = "" } = JSON.parse(text || "{}") as { jobId?: string };
      await flood(signal, 150, () => member.call("GET", jobId === "" ? "/jobs" : `/jobs/${jobId}/events`));
    },
  },
  {
    name: "pages-without-a-key",
    about: "the documentation, readiness and unknown keys, in 32 lanes without a key",
    run: ({ anonymous, signal }) =>
      flood(signal, 32, (turn) =>
        anonymous.call("GET", ["/docs", "/readyz", "/openapi.json", "/ai/models"][turn % 4] ?? "/docs"),
      ),
  },
];
