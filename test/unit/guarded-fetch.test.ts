import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo, LookupFunction } from "node:net";
import { gzipSync } from "node:zlib";
import { expect } from "chai";
import { AppError } from "../../src/errors.ts";
import { type GuardedFetch, makeGuardedFetch } from "../../src/net/guarded-fetch.ts";

const MAX_BYTES = 100_000;

type Served = { origin: string; port: number; server: Server; hits: () => number };

async function serve(listener: RequestListener): Promise<Served> {
  let hits = 0;
  const server = createServer((request, response) => {
    hits += 1;
    listener(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { origin: `http://127.0.0.1:${port}`, port, server, hits: () => hits };
}

/** A name server of our own: every name resolves to these addresses. */
function resolvingTo(...addresses: string[]): LookupFunction {
  return (_name, _options, callback) => {
    const found = addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
    callback(null, found);
  };
}

async function codeOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
    return "none";
  } catch (error) {
    expect(error).to.be.instanceOf(AppError);
    return (error as AppError).code;
  }
}

describe("guarded fetch", () => {
  const fetchers: GuardedFetch[] = [];
  const served: Served[] = [];
  const signal = new AbortController().signal;
  let canary: Served;

  const open = (options: { allow?: string[]; lookup?: LookupFunction; timeoutMs?: number }) => {
    const { allow = [], lookup, timeoutMs = 5_000 } = options;
    const limits = { allowOrigins: allow, timeoutMs, maxBytes: MAX_BYTES };
    const fetcher = makeGuardedFetch({ ...limits, ...(lookup ? { lookup } : {}) });
    fetchers.push(fetcher);
    return fetcher;
  };
  const start = async (listener: RequestListener) => {
    const one = await serve(listener);
    served.push(one);
    return one;
  };

  beforeEach(async () => {
    canary = await start((_request, response) => response.end("secret"));
  });
  afterEach(async () => {
    await Promise.all(fetchers.splice(0).map((fetcher) => fetcher.close()));
    for (const { server } of served.splice(0)) {
      server.closeAllConnections();
      server.close();
    }
  });

  it("does not reach loopback by address", async () => {
    expect(await codeOf(open({}).get(canary.origin, signal))).to.equal("source_refused");
    expect(canary.hits()).to.equal(0);
  });

  for (const addresses of [
    ["127.0.0.1"],
    ["::1"],
    ["8.8.8.8", "127.0.0.1"],
    ["127.0.0.1", "8.8.8.8"],
    ["::ffff:127.0.0.1"],
  ]) {
    it(`does not reach loopback by a name that resolves to ${addresses.join(" and ")}`, async () => {
      const fetcher = open({ lookup: resolvingTo(...addresses) });
      expect(await codeOf(fetcher.get(`http://docs.example.com:${canary.port}/`, signal))).to.equal("source_refused");
      expect(canary.hits()).to.equal(0);
    });
  }

  it("does not reach loopback by a redirect from an allowed origin", async () => {
    const door = await start((_request, response) => response.writeHead(302, { location: canary.origin }).end());
    expect(await codeOf(open({ allow: [door.origin] }).get(door.origin, signal))).to.equal("source_refused");
    expect(door.hits()).to.equal(1);
    expect(canary.hits()).to.equal(0);
  });

  it("does not follow a redirect to another scheme", async () => {
    const door = await start((_request, response) => response.writeHead(307, { location: "file:///etc/passwd" }).end());
    expect(await codeOf(open({ allow: [door.origin] }).get(door.origin, signal))).to.equal("source_refused");
  });

  it("follows five redirects and no more", async () => {
    const door = await start((request, response) => {
      const left = Number(request.url?.slice(1));
      if (left === 0) response.end("arrived");
      else response.writeHead(301, { location: `/${left - 1}` }).end();
    });
    const fetcher = open({ allow: [door.origin] });
    expect((await fetcher.get(`${door.origin}/5`, signal)).bytes.toString()).to.equal("arrived");
    expect(await codeOf(fetcher.get(`${door.origin}/6`, signal))).to.equal("source_unreachable");
  });

  it("tells the type and the final URL, and unpacks gzip", async () => {
    const door = await start((_request, response) => {
      response.writeHead(200, { "content-type": "text/markdown", "content-encoding": "gzip" }).end(gzipSync("# Hello"));
    });
    const { bytes, type, url } = await open({ allow: [door.origin] }).get(`${door.origin}/a.md`, signal);
    expect({ text: bytes.toString(), type, url }).to.deep.equal({
      text: "# Hello",
      type: "text/markdown",
      url: `${door.origin}/a.md`,
    });
  });

  it("stops at the size limit, declared, streamed or unpacked", async () => {
    const bomb = gzipSync(Buffer.alloc(MAX_BYTES * 50));
    const door = await start((request, response) => {
      if (request.url === "/declared") response.writeHead(200, { "content-length": MAX_BYTES + 1 }).end();
      else if (request.url === "/packed") response.writeHead(200, { "content-encoding": "gzip" }).end(bomb);
      else response.write(Buffer.alloc(MAX_BYTES * 2));
    });
    expect(bomb.length).to.be.below(MAX_BYTES);
    for (const path of ["/declared", "/packed", "/streamed"]) {
      const fetcher = open({ allow: [door.origin] });
      expect(await codeOf(fetcher.get(door.origin + path, signal)), path).to.equal("request_too_large");
    }
  });

  it("gives up on a silent server", async () => {
    const door = await start(() => undefined);
    const fetcher = open({ allow: [door.origin], timeoutMs: 200 });
    expect(await codeOf(fetcher.get(door.origin, signal))).to.equal("source_unreachable");
  });

  it("says which failures may pass: a 503 does, a 404 and a picture do not", async () => {
    const door = await start((request, response) => {
      const type = request.url === "/picture" ? "image/png" : "text/plain";
      const status = { "/busy": 503, "/gone": 404 }[request.url ?? ""] ?? 200;
      response.writeHead(status, { "content-type": type }).end("x");
    });
    const tell = async (path: string) => {
      const error: unknown = await open({ allow: [door.origin] })
        .get(door.origin + path, signal)
        .catch((cause: unknown) => cause);
      return error instanceof AppError ? { code: error.code, retryable: error.retryable } : error;
    };
    expect(await tell("/busy")).to.deep.equal({ code: "source_unreachable", retryable: true });
    expect(await tell("/gone")).to.deep.equal({ code: "source_unreachable", retryable: false });
    expect(await tell("/picture")).to.deep.equal({ code: "source_unreadable", retryable: false });
  });

  it("ends with the caller's signal", async () => {
    const door = await start(() => undefined);
    const controller = new AbortController();
    const fetching = open({ allow: [door.origin] }).get(door.origin, controller.signal);
    controller.abort(new AppError("cancelled", "Stopped."));
    expect(await codeOf(fetching)).to.equal("cancelled");
  });
});
