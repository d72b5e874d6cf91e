import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";

/** What a line holds, whichever provider it is for. */
type Line = {
  customId: string;
  model: string;
  question: string;
  url?: string;
  messages?: { content: unknown }[];
  /** Whether it asks how likely its tokens were. */
  logprobs?: boolean;
  /** What an Anthropic client sent, as it came. */
  params?: unknown;
};
type Batch = {
  id: string;
  /** The path with its query, and the headers, of the request that made it. */
  sentTo: string;
  headers: IncomingMessage["headers"];
  provider: "openai" | "anthropic";
  lines: Line[];
  metadata: Record<string, string>;
  createdAt: Date;
  endsAt: number;
};

export type FakeBatches = {
  /** What an OpenAI client takes as base URL. */
  url: string;
  /** What an Anthropic client takes as base URL. */
  origin: string;
  batches: Batch[];
  /** How often each item was submitted. */
  submitted: Map<string, number>;
  /** The tokens of all lines that were answered; what was refused or has expired costs nothing. */
  served(): { inputTokens: number; outputTokens: number };
  /** How long a batch takes from now on, in ms. */
  setDuration(ms: number): void;
  /** Called when a batch was taken, before the answer is sent; false breaks the connection off instead. */
  onSubmit(hook: (batch: Batch) => boolean): void;
  close(): Promise<void>;
};

/** The usage of every answer. */
export const batchUsage = { input: 1_000, output: 100 };

/** What Claude thinks before it answers one of them. */
export const batchThinking = { type: "thinking", thinking: "So.", signature: "c2ln+/==" };

/**
 * The batch interfaces of OpenAI and Anthropic: files, batches, results. A question with `FAIL` is refused, one with
 * `EXPIRE` expires each time, one with `EXPIRE-ONCE` the first time; any other is answered by itself, one with `THINK` after
 * some thinking of Claude's.
 */
export async function startFakeBatches(): Promise<FakeBatches> {
  const files = new Map<string, string>();
  const batches: Batch[] = [];
  const submitted = new Map<string, number>();
  let durationMs = 100;
  let hook: (batch: Batch) => boolean = () => true;

  const take = (
    { url = "", headers }: IncomingMessage,
    { provider, lines, metadata = {} }: Pick<Batch, "provider" | "lines"> & Partial<Batch>,
  ): Batch => {
    for (const { customId } of lines) submitted.set(customId, (submitted.get(customId) ?? 0) + 1);
    const batch: Batch = {
      id: `batch_${batches.length}`,
      sentTo: url,
      headers,
      provider,
      lines,
      metadata,
      createdAt: new Date(),
      endsAt: Date.now() + durationMs,
    };
    batches.push(batch);
    return batch;
  };
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const bytes = Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>));
    const path = (request.url ?? "").split("?")[0] ?? "";
    const reply = (body: unknown) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(typeof body === "string" ? body : JSON.stringify(body));
    };
    const replyTaken = (batch: Batch, view: unknown) => (hook(batch) ? reply(view) : response.destroy());
    const listOf = (provider: Batch["provider"]) => batches.filter((one) => one.provider === provider).toReversed();
    const batchOf = (id: string | undefined) => batches.find((one) => one.id === id);
    const key = `${request.method} ${path}`;
    const [, id, rest] = /^\/v1\/(?:messages\/batches|batches|files)\/([^/]+)(\/\w+)?$/.exec(path) ?? [];
    const batch = batchOf(id);
    if (key === "POST /v1/files") {
      const form = await new Response(bytes, {
        headers: { "content-type": request.headers["content-type"] ?? "" },
      }).formData();
      const file = form.get("file");
      if (!(file instanceof File) || form.get("purpose") !== "batch") throw new Error("not a batch file");
      const fileId = `file_${files.size}`;
      files.set(fileId, await file.text());
      return reply({ id: fileId, object: "file" });
    }
    if (key === "POST /v1/batches") {
      const { input_file_id: fileId, endpoint, metadata } = JSON.parse(bytes.toString("utf8"));
      const taken = take(request, {
        provider: "openai",
        lines: readOpenAi(files.get(fileId) ?? "", endpoint),
        metadata,
      });
      return replyTaken(taken, openAiView(taken));
    }
    if (key === "GET /v1/batches") return reply({ data: listOf("openai").map(openAiView) });
    if (key === "POST /v1/messages/batches") {
      const { requests } = JSON.parse(bytes.toString("utf8"));
      const taken = take(request, { provider: "anthropic", lines: requests.map(readAnthropic) });
      return replyTaken(taken, anthropicView(taken));
    }
    if (key === "GET /v1/messages/batches") return reply({ data: listOf("anthropic").map(anthropicView) });
    if (path.startsWith("/v1/files/") && rest === "/content") return reply(outputOf(id ?? "", batches, submitted));
    if (batch?.provider === "openai" && !rest) return reply(openAiView(batch));
    if (batch?.provider === "anthropic" && !rest) return reply(anthropicView(batch));
    if (batch && rest === "/results")
      return reply(jsonLines(batch.lines.map((line) => anthropicResult(line, submitted))));
    response.writeHead(404, { "content-type": "application/json" });
    response.end(JSON.stringify({ error: { message: `nothing at ${key}`, type: "not_found" } }));
  };
  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => {
      response.writeHead(500);
      response.end(String(error));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the fake has no port");
  const origin = `http://127.0.0.1:${address.port}`;
  return {
    url: `${origin}/v1`,
    origin,
    batches,
    submitted,
    served: () => {
      const isAnswered = (line: Line) => !isExpired(line, submitted) && !line.question.includes("FAIL");
      const answered = new Set(batches.flatMap(({ lines }) => lines.filter(isAnswered).map((one) => one.customId)));
      return { inputTokens: answered.size * batchUsage.input, outputTokens: answered.size * batchUsage.output };
    },
    setDuration: (ms) => {
      durationMs = ms;
    },
    onSubmit: (given) => {
      hook = given;
    },
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

const jsonLines = (items: readonly unknown[]) => items.map((item) => `${JSON.stringify(item)}\n`).join("");
const lastOf = (messages: { content: string }[]) => messages.at(-1)?.content ?? "";

const openAiPaths = ["/v1/chat/completions", "/v1/responses"];

/** A batch has one endpoint, and each line names it. */
function readOpenAi(file: string, endpoint: string): Line[] {
  return file
    .split("\n")
    .filter((text) => text !== "")
    .map((text) => {
      const { custom_id: customId, body, url } = JSON.parse(text);
      if (url !== endpoint || !openAiPaths.includes(url)) throw new Error("another endpoint");
      return {
        customId,
        model: body.model,
        question: lastOf(body.messages ?? body.input),
        url,
        logprobs: body.logprobs === true,
      };
    });
}

function readAnthropic({
  custom_id: customId,
  params,
}: {
  custom_id: string;
  params: { model: string; messages: { content: string }[] };
}): Line {
  const { model, messages } = params;
  return { customId, model, question: lastOf(messages), messages, params };
}

function isExpired({ question, customId }: Line, submitted: Map<string, number>): boolean {
  if (question.includes("EXPIRE-ONCE")) return submitted.get(customId) === 1;
  return question.includes("EXPIRE");
}

const openAiView = (batch: Batch) => {
  const hasEnded = Date.now() >= batch.endsAt;
  return {
    id: batch.id,
    object: "batch",
    status: hasEnded ? "completed" : "in_progress",
    metadata: batch.metadata,
    ...(hasEnded ? { output_file_id: `out-${batch.id}`, error_file_id: `err-${batch.id}` } : {}),
  };
};

const anthropicView = (batch: Batch) => ({
  id: batch.id,
  type: "message_batch",
  processing_status: Date.now() >= batch.endsAt ? "ended" : "in_progress",
  created_at: batch.createdAt.toISOString(),
  request_counts: { processing: batch.lines.length, succeeded: 0, errored: 0, canceled: 0, expired: 0 },
});

function outputOf(fileId: string, batches: readonly Batch[], submitted: Map<string, number>): string {
  const batch = batches.find(({ id }) => fileId.endsWith(id));
  const isErrorFile = fileId.startsWith("err-");
  const lines = batch?.lines ?? [];
  // In no order, as the real one.
  return jsonLines(
    lines
      .filter((line) => isErrorFile === isExpired(line, submitted))
      .toReversed()
      .map((line) => openAiResult(line, isErrorFile)),
  );
}

/** A question names how its answer is to end, as `END:length`. */
const endOf = (question: string, end: string) => /END:(\w+)/.exec(question)?.[1] ?? end;

/** What every answer that is asked for it says of its first token. */
export const batchLogprob = {
  token: "Re",
  logprob: -0.1,
  bytes: [82, 101],
  top_logprobs: [{ token: "Ra", logprob: -3, bytes: null }],
};

function openAiResult({ customId, model, question, url, logprobs }: Line, hasExpired: boolean): unknown {
  if (hasExpired) {
    return { custom_id: customId, response: null, error: { code: "batch_expired", message: "It took too long." } };
  }
  if (question.includes("FAIL")) {
    const body = { error: { message: "The prompt was refused.", type: "invalid_request_error" } };
    return { custom_id: customId, response: { status_code: 400, body }, error: null };
  }
  const { input, output } = batchUsage;
  const text = `Re: ${question}`;
  const response = {
    id: "resp_1",
    object: "response",
    status: "completed",
    model,
    output: [{ type: "message", role: "assistant", content: [{ type: "output_text", text }] }],
    usage: { input_tokens: input, output_tokens: output, total_tokens: input + output },
  };
  const completion = {
    id: "chatcmpl-1",
    object: "chat.completion",
    model,
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: text },
        finish_reason: endOf(question, "stop"),
        ...(logprobs && { logprobs: { content: [batchLogprob], refusal: null } }),
      },
    ],
    usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
  };
  const body = url === "/v1/responses" ? response : completion;
  return { custom_id: customId, response: { status_code: 200, body }, error: null };
}

function anthropicResult(line: Line, submitted: Map<string, number>): unknown {
  const { customId, model, question } = line;
  if (isExpired(line, submitted)) return { custom_id: customId, result: { type: "expired" } };
  if (question.includes("FAIL")) {
    const error = { type: "error", error: { type: "invalid_request_error", message: "The prompt was refused." } };
    return { custom_id: customId, result: { type: "errored", error } };
  }
  const message = {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model,
    content: [...(question.includes("THINK") ? [batchThinking] : []), { type: "text", text: `Re: ${question}` }],
    stop_reason: endOf(question, "end_turn"),
    usage: { input_tokens: batchUsage.input, output_tokens: batchUsage.output },
  };
  return { custom_id: customId, result: { type: "succeeded", message } };
}
