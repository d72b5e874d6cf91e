import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { openApi } from "../../scripts/cli/api.ts";

describe("a command that calls the API", () => {
  let server: Server;
  let calls: string[];
  /** Answers, the first one first; the last one stays. */
  let answers: { status: number; retryAfter?: string; body: object }[];
  let url: string;
  before((done) => {
    server = createServer(async (request, response) => {
      calls.push((await Array.fromAsync(request)).join(""));
      const { status, retryAfter, body } = (answers.length > 1 ? answers.shift() : answers[0]) ?? {
        status: 500,
        body: {},
      };
      response.writeHead(status, retryAfter === undefined ? {} : { "retry-after": retryAfter });
      response.end(JSON.stringify(body));
    }).listen(0, "127.0.0.1", () => {
      url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      done();
    });
  });
  beforeEach(() => {
    calls = [];
  });
  after((done) => {
    server.close(done);
    server.closeAllConnections();
  });
  const tooMany = { status: 429, body: { error: { message: "Too many requests." } } };
  const call = () => openApi({ url, key: "sk_none" })("POST", "/rag/query", { query: "pump" });

  it("calls again after a 429 that says when, with the same body", async () => {
    answers = [
      { ...tooMany, retryAfter: "0" },
      { ...tooMany, retryAfter: "1" },
      { status: 200, body: { results: [] } },
    ];
    expect(await call()).to.deep.equal({ results: [] });
    expect(calls).to.deep.equal(Array.from({ length: 3 }, () => JSON.stringify({ query: "pump" })));
  });

  for (const retryAfter of [undefined, "86400", "soon"])
    it(`tells of a 429 that has ${retryAfter ?? "no time"} to wait`, async () => {
      answers = [{ ...tooMany, ...(retryAfter === undefined ? {} : { retryAfter }) }];
      const error = await call().then(
        () => undefined,
        (error: Error) => error,
      );
      expect(error?.message).to.contain("429: Too many requests.");
      expect(calls).to.have.length(1);
    });
});
