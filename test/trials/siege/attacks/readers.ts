import { type Attack, type Client, type Field, flood, idOf, prepared, reaches, toForm } from "../attack.ts";
import { addOwnModel, endlessStream, speaking } from "../own-model.ts";

/** As many as one key has at once, less some. */
const READERS = 95;
/** Just above what is cut, in bytes a second. */
const SLOW = 50_000;
const LINE = "The pump is bled at its highest valve, after the filter was changed, and never before the season.\n";

/** Reads what `prepare` has made in many lanes, at a pace. `prepare` returns the path to read. */
function readers(
  name: string,
  about: string,
  attack: { prepare(field: Field): Promise<string>; lanes?: number; bytesPerSecond?: number },
): Attack {
  const { prepare, lanes = READERS, bytesPerSecond = SLOW } = attack;
  return prepared({
    name,
    about,
    prepare,
    run: ({ member, signal }, path) => flood(signal, lanes, () => member.readSlowly(path, bytesPerSecond)),
  });
}

/** Puts a file of so many bytes into the store, and returns its id. */
async function keepFile(member: Client, bytes: number): Promise<string> {
  const file = { bytes: LINE.repeat(bytes / LINE.length), type: "text/plain", name: "large.txt" };
  const form = await toForm(file, { purpose: "user_data" });
  const made = await member.call("POST", "/v1/files", { body: form.body, headers: { "content-type": form.type } });
  return idOf(made, "id");
}

/** A batch of 64 messages whose results are 640 kB each: the offline model fills a tool's fields with the question. */
async function makeLargeBatch(member: Client): Promise<string> {
  const names = Array.from({ length: 64 }, (_, n) => `field${n}`);
  const properties = Object.fromEntries(names.map((name) => [name, { type: "string" }]));
  const params = {
    model: "meta-llm",
    max_tokens: 4_096,
    messages: [{ role: "user", content: "word ".repeat(2_000) }],
    tools: [{ name: "keep", input_schema: { type: "object", properties, required: names } }],
    tool_choice: { type: "tool", name: "keep" },
  };
  const requests = Array.from({ length: 64 }, (_, n) => ({ custom_id: `n${n}`, params }));
  const path = "/v1/messages/batches";
  const id = idOf(await member.call("POST", path, { json: { requests } }), "id");
  await reaches(member, `${path}/${id}`, '"processing_status":"ended"');
  return `${path}/${id}/results`;
}

/** A response whose text has so many bytes; one that was streamed is kept with its events, which say the text five times. */
async function makeResponse(field: Field, bytes: number, stream = false): Promise<string> {
  const said = "x".repeat(bytes);
  const model = await addOwnModel(
    field,
    speaking(() => ({ text: said })),
  );
  const json = { model, input: "Tell a long story.", background: true, stream };
  const { text } = await field.member.call("POST", "/v1/responses", { json });
  const id = /"id":"(resp[^"]+)"/.exec(text)?.[1] ?? "";
  await reaches(field.member, `/v1/responses/${id}`, '"status":"completed"');
  return `/v1/responses/${id}`;
}

/** Attacks by callers who read slowly, or not at all, what they asked for. */
export const readerAttacks: readonly Attack[] = [
  readers("slow-files", `${READERS} readers of 50 kB a second of a file of 50 MB`, {
    prepare: async ({ member }) => `/v1/files/${await keepFile(member, 50_000_000)}/content`,
  }),
  readers("slow-results", `${READERS} readers of 50 kB a second of a batch's results of 40 MB`, {
    prepare: ({ member }) => makeLargeBatch(member),
  }),
  readers("slow-store-files", `${READERS} readers of 50 kB a second of a vector store's file of 4 MB`, {
    async prepare({ member }) {
      const fileId = await keepFile(member, 4_000_000);
      const store = idOf(await member.call("POST", "/v1/vector_stores", { json: { name: "pumps" } }), "id");
      const path = `/v1/vector_stores/${store}/files`;
      await member.call("POST", path, { json: { file_id: fileId } });
      await reaches(member, `${path}/${fileId}`, '"status":"completed"');
      return `${path}/${fileId}/content`;
    },
  }),
  readers("slow-responses", `${READERS} readers of 50 kB a second of a stored response of 3.9 MB`, {
    prepare: (field) => makeResponse(field, 3_900_000),
  }),
  readers("large-responses", "a stored response of 3.9 MB, read eight times at once, again and again", {
    prepare: (field) => makeResponse(field, 3_900_000),
    lanes: 8,
    bytesPerSecond: 1e9,
  }),
  readers("replayed-events", "60 readers of a response's events of 6 MB", {
    prepare: async (field) => `${await makeResponse(field, 1_200_000, true)}?stream=true`,
    lanes: 60,
    bytesPerSecond: 1e9,
  }),
  {
    name: "unread-answers",
    about: "embeddings of 8 million numbers, which few bytes ask for, that nobody reads",
    run: ({ member, signal }) =>
      flood(signal, READERS, (turn) => {
        if (turn % 4 === 0) return member.readSlowly("/openapi.json", 0);
        const json = { input: Array.from({ length: 2_048 }, (_, n) => `pump ${n}`), dimensions: 4_096 };
        return member.readSlowly("/ai/embeddings", 0, { method: "POST", json });
      }),
  },
  prepared({
    name: "unread-streams",
    about: "chats of a model that never stops, whose stream nobody reads",
    prepare: (field) => addOwnModel(field, endlessStream("word ".repeat(200))),
    async run(field, model) {
      const json = { model, messages: [{ role: "user", content: "Tell a story." }], stream: true };
      const follow = () => field.member.readSlowly("/v1/chat/completions", 0, { method: "POST", json });
      await flood(field.signal, READERS, follow);
    },
  }),
  prepared({
    name: "repeated-answers",
    about: "a chat of 7.8 MB that is kept for repeats, repeated and read slowly in as many lanes as one key has",
    async prepare(field) {
      const text = "x".repeat(3_900_000);
      const model = await addOwnModel(
        field,
        speaking(() => ({ text })),
      );
      const json = { model, messages: [{ role: "user", content: "Tell a story." }] };
      const asked = { json, headers: { "idempotency-key": "repeated" } };
      idOf(await field.member.call("POST", "/ai/chat", asked), "logId");
      return asked;
    },
    run: ({ member, signal }, asked) =>
      flood(signal, READERS, () => member.readSlowly("/ai/chat", SLOW, { method: "POST", ...asked })),
  }),
  prepared({
    name: "large-runs",
    about: "a run whose 40 steps say 3.6 MB, read again and again in 32 lanes",
    async prepare(field) {
      const { member } = field;
      const text = "x".repeat(90_000);
      const model = await addOwnModel(
        field,
        speaking(() => ({ text })),
      );
      const steps = Array.from({ length: 40 }, () => ({ type: "ai_completion", model, prompt: "Go." }));
      const made = await member.call("POST", "/workflows", { json: { name: "long", steps } });
      const path = `/workflows/${idOf(made, "workflowId")}`;
      const runId = idOf(await member.call("POST", `${path}/execute`, { json: {} }), "runId");
      await reaches(member, `${path}/runs`, '"status":"completed"');
      return `${path}/runs/${runId}`;
    },
    run: ({ member, signal }, path) => flood(signal, 32, () => member.call("GET", path)),
  }),
];
