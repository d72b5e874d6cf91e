import type { IncomingMessage, ServerResponse } from "node:http";

type Line = { customId: string; url: string; body: { model: string; input: string[] } };

export type EmbeddingBatch = {
  id: string;
  lines: Line[];
  metadata: Record<string, string>;
  /** One of OpenAI's; `in_progress` until the test, or a cancellation, changes it. */
  status: string;
  /** Lines that were embedded by the time that it ended; all, unless the test says otherwise. */
  isEmbedded: (line: Line) => boolean;
};

export type FakeEmbeddingBatches = {
  list: EmbeddingBatch[];
  /** Called when a batch was taken, before the response: a status refuses it, false breaks the connection off. */
  onSubmit(hook: (batch: EmbeddingBatch) => number | boolean): void;
  /** Called before the results of a batch are sent. */
  onResults(hook: () => Promise<void>): void;
  /** The texts of lines that were embedded: what is charged. */
  texts(): string[];
};

type Answer = (body: Line["body"]) => object;

/** OpenAI's Batch API for embeddings: https://platform.openai.com/docs/api-reference/batch. */
export function fakeEmbeddingBatches(answer: Answer) {
  const files = new Map<string, string>();
  const list: EmbeddingBatch[] = [];
  let onSubmit: (batch: EmbeddingBatch) => number | boolean = () => true;
  let onResults: () => Promise<void> = async () => undefined;
  const hasResults = ({ status }: EmbeddingBatch) => ["completed", "expired", "cancelled"].includes(status);
  const viewOf = (batch: EmbeddingBatch) => ({
    id: batch.id,
    object: "batch",
    endpoint: "/v1/embeddings",
    status: batch.status,
    metadata: batch.metadata,
    ...(hasResults(batch) ? { output_file_id: `out-${batch.id}`, error_file_id: `err-${batch.id}` } : {}),
    ...(batch.status === "failed"
      ? { errors: { object: "list", data: [{ message: "The file has too many tokens." }] } }
      : {}),
  });
  const linesOf = ({ lines, isEmbedded }: EmbeddingBatch, kind: string) =>
    lines
      .filter((line) => isEmbedded(line) === (kind === "out"))
      .toReversed() // in no order, as the real one
      .map(({ customId: custom_id, body }) => {
        const expired = { code: "batch_expired", message: "This request could not be executed in time." };
        return kind === "out"
          ? { custom_id, response: { status_code: 200, request_id: "r", body: answer(body) }, error: null }
          : { custom_id, response: null, error: expired };
      });
  const submit = (text: string): EmbeddingBatch => {
    const { input_file_id: fileId, endpoint, metadata = {} } = JSON.parse(text);
    const lines = (files.get(fileId) ?? "").trimEnd().split("\n").map(readLine);
    if (endpoint !== "/v1/embeddings" || lines.some(({ url }) => url !== endpoint)) throw new Error("another endpoint");
    return { id: `batch_${list.length}`, lines, metadata, status: "in_progress", isEmbedded: () => true };
  };
  /** True when the request was one for a file or a batch. */
  const serve = async (request: IncomingMessage, response: ServerResponse, bytes: Buffer): Promise<boolean> => {
    const path = (request.url ?? "").replace(/\?.*/, "");
    const reply = (body: object, status = 200) => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(body));
      return true;
    };
    if (request.method === "POST" && path === "/v1/files") {
      const headers = { "content-type": request.headers["content-type"] ?? "" };
      const file = (await new Response(bytes, { headers }).formData()).get("file");
      if (!(file instanceof File)) throw new Error("not a file");
      files.set(`file_${files.size}`, await file.text());
      return reply({ id: `file_${files.size - 1}`, object: "file" });
    }
    if (request.method === "POST" && path === "/v1/batches") {
      const batch = submit(bytes.toString("utf8"));
      const taken = onSubmit(batch);
      if (typeof taken === "number") return reply({ error: { message: "no batches for this key" } }, taken);
      list.push(batch);
      if (taken) return reply(viewOf(batch));
      response.destroy();
      return true;
    }
    if (path === "/v1/batches") return reply({ object: "list", data: list.toReversed().map(viewOf) });
    const [, id, action] = /^\/v1\/batches\/([^/]+)(\/cancel)?$/.exec(path) ?? [];
    const batch = list.find((one) => one.id === id);
    if (batch && action) batch.status = "cancelled";
    if (batch) return reply(viewOf(batch));
    const [, kind = "", of] = /^\/v1\/files\/(out|err)-([^/]+)\/content$/.exec(path) ?? [];
    const ended = list.find((one) => one.id === of);
    if (!ended) return false;
    await onResults();
    response.end(
      linesOf(ended, kind)
        .map((line) => `${JSON.stringify(line)}\n`)
        .join(""),
    );
    return true;
  };
  const fake: FakeEmbeddingBatches = {
    list,
    onSubmit: (hook) => {
      onSubmit = hook;
    },
    onResults: (hook) => {
      onResults = hook;
    },
    texts: () =>
      list
        .filter(hasResults)
        .flatMap(({ lines, isEmbedded }) => lines.filter(isEmbedded).flatMap(({ body }) => body.input)),
  };
  return { fake, serve };
}

function readLine(text: string): Line {
  const { custom_id: customId, url, body } = JSON.parse(text);
  return { customId, url, body };
}
