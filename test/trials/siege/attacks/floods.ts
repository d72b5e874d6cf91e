import { type Attack, flood, idOf } from "../attack.ts";

/** Attacks by the number of calls, and by what each leaves behind. */
export const floodAttacks: readonly Attack[] = [
  {
    name: "many-documents",
    about: "as many documents of 200 kB as the rate allows",
    run: ({ member, signal }) =>
      flood(signal, 32, (turn) =>
        member.call("POST", "/rag/ingest", {
          json: { content: `Sentence of document ${turn}. `.repeat(7_000) },
          headers: { prefer: "respond-async" },
        }),
      ),
  },
  {
    name: "deleted-documents",
    about: "documents that are deleted while they are indexed",
    run: ({ member, signal }) =>
      flood(signal, 8, async (turn) => {
        const json = { content: `Line ${turn}. `.repeat(20_000) };
        const made = await member.call("POST", "/rag/ingest", { json, headers: { prefer: "respond-async" } });
        if (made.status !== 202) return made;
        return member.call("DELETE", `/rag/documents/${idOf(made, "documentId")}`);
      }),
  },
  {
    name: "wide-queries",
    about: "queries of 8,000 characters for 100 results",
    async prepare({ member }) {
      for (let n = 0; n < 5; n += 1)
        await member.call("POST", "/rag/ingest", { json: { content: `word${n} valve pump. `.repeat(50_000) } });
    },
    run: ({ member, signal }) =>
      flood(signal, 8, (turn) => {
        const query = Array.from({ length: 900 }, (_, n) => `valve${(n * turn) % 977}`)
          .join(" ")
          .slice(0, 8_000);
        return member.call("POST", "/rag/query", { json: { query, topK: 100 } });
      }),
  },
  {
    name: "long-addresses",
    about: "paths and query strings of 14 kB that lead nowhere, in 512 lanes",
    run: ({ member, signal }) =>
      flood(signal, 512, (turn) => member.call("GET", `/jobs/${"a/".repeat(5_000)}${turn}?x=${"%20".repeat(1_300)}`)),
  },
  {
    name: "aborted-chats",
    about: "streams of chats that are cut after their first byte",
    run: ({ url, memberKey, signal }) =>
      flood(signal, 128, async () => {
        const cut = new AbortController();
        const stop = () => cut.abort();
        signal.addEventListener("abort", stop, { once: true });
        try {
          const headers = { authorization: `Bearer ${memberKey}`, "content-type": "application/json" };
          const body = JSON.stringify({ messages: [{ role: "user", content: "Tell a story." }], stream: true });
          const response = await fetch(`${url}/ai/chat`, { method: "POST", headers, body, signal: cut.signal });
          cut.abort();
          return { status: response.status, text: "" };
        } catch {
          return { status: 0, text: "" }; // cut by the end of the attack, or by the product
        } finally {
          signal.removeEventListener("abort", stop);
        }
      }),
  },
  {
    name: "cancelled-runs",
    about: "runs of a workflow that are cancelled at once",
    run: async ({ member, signal }) => {
      const steps = [{ type: "human_approval", assigneeRole: "admin", timeoutMs: 60_000 }];
      const made = await member.call("POST", "/workflows", { json: { name: "waits", steps } });
      const path = `/workflows/${idOf(made, "workflowId")}`;
      await flood(signal, 16, async () => {
        const run = await member.call("POST", `${path}/execute`, { json: { input: {} } });
        if (run.status !== 202) return run;
        return member.call("POST", `/jobs/${idOf(run, "jobId")}/cancel`);
      });
    },
  },
  {
    name: "wrong-keys",
    about: "calls with a new key each time, of the right form",
    run: ({ anonymous, signal }) =>
      flood(signal, 512, (turn) =>
        anonymous.call("GET", "/jobs", { headers: { authorization: `Bearer sk_${String(turn).padStart(32, "0")}` } }),
      ),
  },
  {
    name: "unknown-paths",
    about: "addresses of 14 kB that lead nowhere or need a key, in 512 lanes without one",
    run: ({ anonymous, signal }) => {
      const path = "/a".repeat(7_000);
      return flood(signal, 512, (turn) =>
        anonymous.call("GET", `${turn % 2 === 0 ? "" : "/jobs?after="}${path}${turn}`),
      );
    },
  },
];
