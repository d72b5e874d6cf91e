import { once } from "node:events";
import { type ClientRequest, createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import type { ApiContext } from "../../api/context.ts";
import { makeBodyBudget } from "../../api/middleware/body-budget.ts";

const LENGTH = 4 << 20;
const PART = Buffer.alloc(64 << 10, "a");

describe("the memory of a body that arrives slowly", () => {
  let server: Server;
  before(async () => {
    const { reserveForBody } = makeBodyBudget({ totalBytes: 8 << 20, tenantBytes: 8 << 20, measureMs: 300 });
    server = createServer(async (req, res) => {
      const ctx = { req, res, state: {}, get: (name: string) => req.headers[name] ?? "" };
      reserveForBody(ctx as unknown as ApiContext, LENGTH); // all that it reads of a context
      req.on("error", () => undefined);
      let bytes = 0;
      req.on("data", (part: Buffer) => {
        bytes += part.length;
      });
      req.on("end", () => res.end(String(bytes)));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  after(() => server.close());

  const begin = () => {
    const { port } = server.address() as AddressInfo;
    return request({ port, method: "POST", headers: { "content-length": LENGTH } });
  };

  const cut = async (idle: ClientRequest) => {
    idle.flushHeaders();
    const [error] = (await once(idle, "error")) as [NodeJS.ErrnoException];
    return error.code;
  };

  it("is free again: the connection is cut", async () => {
    expect(await Promise.all([cut(begin()), cut(begin())]), "as many as there is room for").to.deep.equal([
      "ECONNRESET",
      "ECONNRESET",
    ]);
    expect(await cut(begin()), "in their place").to.equal("ECONNRESET");
  });

  it("is held while the body keeps the least pace", async () => {
    const steady = begin();
    const response = once(steady, "response");
    for (let sent = 0; sent < LENGTH; sent += PART.length) {
      steady.write(PART);
      if (sent % (16 * PART.length) === 0) await new Promise((resolve) => setTimeout(resolve, 50));
    }
    steady.end();
    const [answer] = await response;
    let text = "";
    for await (const part of answer) text += String(part);
    expect(text).to.equal(String(LENGTH));
  });
});
