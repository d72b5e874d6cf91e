import { EventEmitter, once } from "node:events";
import { type ClientRequest, createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import type { ApiContext } from "../../api/context.ts";
import { makeBodyBudget, makeUploadRate } from "../../api/middleware/body-budget.ts";
import { makePresence } from "../../src/isolation/pace.ts";
import { AppError } from "../../src/lib/errors.ts";

const LENGTH = 4 << 20;
const PART = Buffer.alloc(64 << 10, "a");

describe("the turns of a tenant's large bodies", () => {
  const MIB = 1 << 20;
  const ofMib = { bytesPerSecond: MIB, requestsPerMinute: 300, hasOthers: () => false };

  it("follow each other at four times its rate, after the first", () => {
    let now = 0;
    const takeUpload = makeUploadRate({ ...ofMib, now: () => now });
    expect(
      [1, 2, 3].map(() => takeUpload("a", 2 * MIB)),
      "ms until it is read",
    ).to.deep.equal([0, 500, 1_000]);
    expect(takeUpload("b", 8 * MIB), "another tenant's").to.equal(0);
    now = 1_200;
    expect(takeUpload("a", 2 * MIB), "while the third is read").to.equal(300);
    now = 5_000;
    expect(takeUpload("a", 2 * MIB), "after a pause").to.equal(0);
  });

  it("follow each other at twice its rate, and no faster than its requests may, while another tenant works here", () => {
    let now = 0;
    const presence = makePresence(() => now);
    const takeUpload = makeUploadRate({ ...ofMib, ...presence, now: () => now });
    const take = (...bodies: number[]) => bodies.map((bytes) => takeUpload("a", bytes));
    presence.begins("a");
    expect(take(MIB, MIB), "alone").to.deep.equal([0, 250]);
    now = 1_000;
    presence.begins("b");
    presence.begins("a");
    expect(take(MIB, 1_000, MIB), "beside another").to.deep.equal([0, 500, 700]);
    now = 10_000;
    presence.begins("a");
    expect(take(MIB, MIB), "alone again").to.deep.equal([0, 250]);
  });

  it("are taken within 16 s of the rate, and a refused one takes none", () => {
    let now = 0;
    const takeUpload = makeUploadRate({ ...ofMib, now: () => now });
    expect([takeUpload("a", 8 * MIB), takeUpload("a", 8 * MIB)]).to.deep.equal([0, 2_000]);
    expect(() => takeUpload("a", 2 * MIB)).to.throw(AppError, "too fast");
    now = 2_000;
    expect(takeUpload("a", 2 * MIB)).to.equal(2_000);
  });

  it("are waited for before a byte is read", async () => {
    const { reserveForBody } = makeBodyBudget({ totalBytes: 8 * MIB, tenantBytes: 8 * MIB, takeUpload: () => 50 });
    const fields: Record<string, string> = { "content-length": String(LENGTH) };
    const req = { destroyed: false, complete: false, socket: { bytesRead: 0 } };
    const open = () => ({ req, res: new EventEmitter(), state: {}, get: (name: string) => fields[name] ?? "" });
    const first = open();
    const turn = reserveForBody(first as unknown as ApiContext, LENGTH);
    expect(await Promise.race([turn, Promise.resolve("waits")])).to.equal("waits");
    await turn;
    const second = open();
    const cut = reserveForBody(second as unknown as ApiContext, LENGTH);
    req.destroyed = true; // the client leaves while it waits
    expect(await cut.catch((error: unknown) => error)).to.include({ code: "client_closed" });
    for (const { res } of [first, second]) res.emit("close");
    req.destroyed = false;
    fields["content-length"] = "100000";
    const third = open();
    await reserveForBody(third as unknown as ApiContext, LENGTH);
    third.res.emit("close");
    fields["content-length"] = "";
    fields["transfer-encoding"] = "chunked";
    const fourth = open();
    const now = (turn: Promise<void>) => Promise.race([turn, Promise.resolve("waits")]);
    expect(await now(reserveForBody(fourth as unknown as ApiContext, LENGTH)), "of unknown length").to.equal(undefined);
    fourth.res.emit("close");
    fields["content-length"] = "1000";
    expect(await now(reserveForBody(open() as unknown as ApiContext, LENGTH)), "a small one").to.equal(undefined);
  });
});

describe("the memory of a body that arrives slowly", () => {
  let server: Server;
  before(async () => {
    const { reserveForBody } = makeBodyBudget({ totalBytes: 8 << 20, tenantBytes: 8 << 20, measureMs: 300 });
    server = createServer(async (req, res) => {
      const ctx = { req, res, state: {}, get: (name: string) => req.headers[name] ?? "" };
      void reserveForBody(ctx as unknown as ApiContext, LENGTH); // all that it reads of a context
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
