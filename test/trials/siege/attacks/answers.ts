import { type Attack, CACHE_BYTES_PER_TENANT, type Client, flood, idOf } from "../attack.ts";

const LARGE_STEPS = 4;

/** A cached answer of 240 kB, just below the largest that is cached: the offline model fills the tool's fields with the question. */
const CACHED = { fields: 24, questionLength: 10_000 };
/** Every fourth answer is kept in the store for repeats of the call, the others in the cache in Redis. */
const REPEATABLE_EVERY = 4;

/** Makes a workflow of 150 steps that take no time. The result runs it with a text, and waits for no end. */
async function makeManySteps(member: Client) {
  // biome-ignore lint/suspicious/noThenProperty: the interface names it so, and it is no function
  const steps = Array.from({ length: 150 }, () => ({ type: "condition", expression: "true", then: [] }));
  const made = await member.call("POST", "/workflows", { json: { name: "steps", steps } });
  const path = `/workflows/${idOf(made, "workflowId")}/execute`;
  const headers = { prefer: "respond-async" };
  return (text: string) => member.call("POST", path, { json: { input: { text } }, headers });
}

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
    about: "cached answers of 240 kB for a day, and idempotent ones of half a megabyte",
    // What is cached, and as much again for the room that Redis itself takes.
    maxRedisGrowthMb: (2 * CACHE_BYTES_PER_TENANT) / 2 ** 20,
    async run({ member, signal }) {
      const json = { input: Array.from({ length: 64 }, () => "word ".repeat(20)), dimensions: 512 };
      const names = Array.from({ length: CACHED.fields }, (_, n) => `field${n}`);
      const properties = Object.fromEntries(names.map((name) => [name, { type: "string" }]));
      const tool = { name: "keep", parameters: { type: "object", properties, required: names } };
      const chat = (turn: number) => ({
        messages: [{ role: "user", content: `${turn} ${"word ".repeat(CACHED.questionLength / 5)}` }],
        tools: [{ type: "function", function: tool }],
        tool_choice: { type: "function", function: { name: tool.name } },
      });
      const headers = { "x-svc-options": "cache=true;cache-ttl=86400" };
      await flood(signal, 4, (turn) =>
        turn % REPEATABLE_EVERY === 0
          ? member.call("POST", "/ai/embeddings", { json, headers: { "idempotency-key": `kept-${turn}` } })
          : member.call("POST", "/ai/chat", { json: chat(turn), headers }),
      );
    },
  },
  {
    name: "open-streams",
    about: "as many streams as one key can open of the events of a job of 150 steps, one job after the other",
    async run({ member, signal }) {
      const run150Steps = await makeManySteps(member);
      await flood(signal, 1, async () => {
        const run = await run150Steps("word ".repeat(20_000));
        if (run.status !== 202) return run;
        const follow = () => member.call("GET", `/jobs/${idOf(run, "jobId")}/events`);
        await Promise.all(Array.from({ length: 95 }, follow));
        return run;
      });
    },
  },
  {
    name: "watched-tenant",
    about: "as many streams as one key can open of all jobs of a tenant, which has many runs of 150 steps",
    async run({ member, signal }) {
      const run150Steps = await makeManySteps(member);
      await Promise.all([
        flood(signal, 90, () => member.call("GET", "/jobs/events")),
        flood(signal, 8, () => run150Steps("")),
      ]);
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
