import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { createParser } from "eventsource-parser";
import type { SseMessage, StreamReply } from "../../api/route.ts";
import { formatSseMessage, writeEventStream } from "../../api/sse.ts";

type InTurn = Parameters<typeof writeEventStream>[2]["inTurn"];

describe("server-sent events", () => {
  let server: Server;
  let serve: (response: ServerResponse, signal: AbortSignal) => Promise<void>;
  let url = "";
  /** Turns that streams have taken. */
  let turns = 0;

  before(async () => {
    server = createServer((_, response) => {
      const controller = new AbortController();
      response.once("close", () => controller.abort());
      void serve(response, controller.signal);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  const countTurn: InTurn = (read) => {
    turns += 1;
    return read();
  };
  const write = (
    response: ServerResponse,
    signal: AbortSignal,
    reply: Omit<StreamReply, "status">,
    inTurn: InTurn = countTurn,
  ) =>
    writeEventStream(
      response,
      { status: 200, ...reply },
      {
        headers: () => ({}),
        signal,
        isHeadOnly: false,
        inTurn,
        onError: () => ({ data: { error: { code: "internal" }, done: true } }),
      },
    );

  it("a message is read back whole, whatever line breaks its text has", () => {
    const texts = ["plain", "two\nlines", "cr\rlf\r\nend", "", " leading", "data: x\n\nevent: y"];
    const seen: { id: string | undefined; event: string | undefined; data: string }[] = [];
    const parser = createParser({ onEvent: ({ id, event, data }) => seen.push({ id, event, data }) });
    for (const [id, data] of texts.entries()) parser.feed(formatSseMessage({ id, event: "e", data }));
    expect(seen.map(({ data }) => data)).to.deep.equal(texts.map((text) => text.replace(/\r\n|\r/g, "\n")));
    expect(seen.map(({ id }) => id)).to.deep.equal(texts.map((_, id) => String(id)));
  });

  it("an error after the first event is sent as a last event, and the stream ends", async () => {
    async function* events(): AsyncGenerator<SseMessage[]> {
      yield [{ data: { n: 1 } }];
      throw new Error("broken");
    }
    serve = (response, signal) => write(response, signal, { events: events() });
    const text = await (await fetch(url)).text();
    expect(text).to.equal('data: {"n":1}\n\ndata: {"error":{"code":"internal"},"done":true}\n\n');
  });

  it("a stream that says much at once takes a turn for each such batch, and one of a model's tokens none", async () => {
    for (const [size, expected] of [
      [40, 0],
      [20_000, 5],
    ] as const) {
      async function* events(): AsyncGenerator<SseMessage[]> {
        for (let n = 0; n < 5; n += 1) yield [{ data: "x".repeat(size) }];
      }
      turns = 0;
      serve = (response, signal) => write(response, signal, { events: events() });
      expect((await (await fetch(url)).text()).length).to.be.above(5 * size);
      expect(turns).to.equal(expected);
    }
  });

  it("a stream that says much at once is read on in its turn, and waits no longer for it than for that", async () => {
    let isInTurn = false;
    const reads: boolean[] = [];
    async function* events(): AsyncGenerator<SseMessage[]> {
      for (let n = 0; n < 3; n += 1) {
        reads.push(isInTurn);
        yield Array.from({ length: 100 }, () => ({ data: "x" }));
      }
    }
    serve = (response, signal) =>
      write(response, signal, { events: events() }, async (read) => {
        isInTurn = true;
        return read().finally(() => (isInTurn = false));
      });
    await (await fetch(url)).text();
    expect(reads, "the first one, and those after much").to.deep.equal([false, true, true]);
  });

  it("a client that leaves ends the iterator", async () => {
    const ended = Promise.withResolvers<void>();
    async function* events(signal: AbortSignal): AsyncGenerator<SseMessage[]> {
      try {
        yield [{ data: "first" }];
        await once(signal, "abort");
      } finally {
        ended.resolve();
      }
    }
    serve = (response, signal) => write(response, signal, { events: events(signal) });
    const controller = new AbortController();
    const response = await fetch(url, { signal: controller.signal });
    await response.body?.getReader().read();
    controller.abort();
    await ended.promise;
  });

  it("does not run ahead of a client that reads slowly", async () => {
    let made = 0;
    async function* events(): AsyncGenerator<SseMessage[]> {
      for (; made < 2_000; made += 1) yield [{ data: "x".repeat(64 << 10) }];
    }
    const written = Promise.withResolvers<void>();
    serve = (response, signal) => write(response, signal, { events: events() }).then(() => written.resolve());
    const response = await fetch(url);
    const reader = response.body?.getReader();
    await reader?.read();
    await new Promise<void>((resolve) => setImmediate(resolve));
    expect(made, "of 125 MB, made while the client read one chunk").to.be.below(500);
    for (let part = await reader?.read(); part && !part.done; part = await reader?.read());
    await written.promise;
    expect(made).to.equal(2_000);
  });
});
