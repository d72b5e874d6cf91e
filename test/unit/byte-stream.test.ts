import { once } from "node:events";
import { createServer, type IncomingMessage, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { writeBytes } from "../../api/byte-stream.ts";
import { pollUntil } from "../support/poll-until.ts";

const BYTES = 32 << 20;
const PIECE = Buffer.alloc(256 << 10, 7);

describe("a reader of a stream of bytes", () => {
  let server: Server;
  let read = 0;
  let isCut = false;
  before(async () => {
    server = createServer(async (_, response) => {
      const left = new AbortController();
      response.once("close", () => {
        isCut = !response.writableFinished;
        left.abort();
      });
      const reply = { status: 200, bytes: pieces(), length: BYTES };
      await writeBytes(response, reply, { headers: {}, signal: left.signal, isHeadOnly: false, measureMs: 300 });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  after(() => server.close());

  async function* pieces() {
    for (read = 0; read < BYTES; read += PIECE.length) yield PIECE;
  }
  const open = async () => {
    const sent = request({ port: (server.address() as AddressInfo).port, agent: false }).end();
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    return response;
  };
  const drain = async (response: IncomingMessage) => {
    let bytes = 0;
    for await (const part of response) bytes += part.length;
    return bytes;
  };

  it("that takes nothing is cut, and no more is read for it", async () => {
    const response = await open();
    await pollUntil(() => isCut);
    expect(read).to.be.below(BYTES);
    const outcome = await drain(response).catch((error: NodeJS.ErrnoException) => error.code);
    expect(outcome).to.equal("ECONNRESET");
  });

  it("that takes them gets all", async () => {
    expect(await drain(await open())).to.equal(BYTES);
  });
});
