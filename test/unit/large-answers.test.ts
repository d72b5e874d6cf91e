import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { makeTransport } from "../../src/gateway/resilience/transport.ts";
import { makeShares } from "../../src/isolation/shares.ts";

const ANSWER = "x".repeat(2 << 20);

describe("large answers of one owner", () => {
  let server: Server;
  before(async () => {
    server = createServer((request, response) => {
      request.resume();
      response.end(request.url === "/small" ? "x" : ANSWER);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  after(() => server.close());

  it("are read one at a time, and small ones at once", async () => {
    const turns = makeShares({ size: 16, perOwner: 1 });
    let held = 0;
    let most = 0;
    let entered = 0;
    const enterLarge = async (signal: AbortSignal) => {
      const leave = await turns.enter("tenant", signal);
      held += 1;
      entered += 1;
      most = Math.max(most, held);
      return () => {
        held -= 1;
        leave();
      };
    };
    const { port } = server.address() as AddressInfo;
    const timeouts = { connectMs: 5_000, firstByteMs: 10_000, idleMs: 10_000 };
    const transport = makeTransport({ baseUrl: `http://127.0.0.1:${port}`, timeouts, enterLarge });
    const send = (path: string) =>
      transport.send({ path, headers: {}, body: "{}", signal: new AbortController().signal });
    try {
      const large = await Promise.all(Array.from({ length: 6 }, () => send("/large")));
      expect(large.map(({ body }) => body.length)).to.deep.equal(Array<number>(6).fill(ANSWER.length));
      expect((await send("/small")).body).to.equal("x");
      expect([entered, most]).to.deep.equal([6, 1]);
    } finally {
      await transport.close();
    }
  });
});
