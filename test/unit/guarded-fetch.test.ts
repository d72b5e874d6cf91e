import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo, LookupFunction } from "node:net";
import { gzipSync } from "node:zlib";
import { expect } from "chai";
import { AppError } from "../../src/lib/errors.ts";
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

async function errorOf(promise: Promise<unknown>): Promise<AppError | undefined> {
  try {
    await promise;
    return undefined;
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
}

const codeOf = async (promise: Promise<unknown>) => (await errorOf(promise))?.code ?? "none";

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
    const error = await errorOf(fetcher.get(`${door.origin}/6`, signal));
    expect(error).to.include({ code: "source_unreachable", param: "url" });
  });

  for (const status of [301, 302, 303, 307, 308]) {
    it(`follows a redirect of status ${status}`, async () => {
      const door = await start((request, response) => {
        if (request.url === "/there") response.end("arrived");
        else response.writeHead(status, { location: "/there" }).end();
      });
      const { bytes, url } = await open({ allow: [door.origin] }).get(door.origin, signal);
      expect([bytes.toString(), url]).to.deep.equal(["arrived", `${door.origin}/there`]);
    });
  }

  it("follows no location of an answer that is no redirect, and takes one without a body", async () => {
    const door = await start((request, response) => {
      if (request.url === "/empty") response.writeHead(204).end();
      else response.writeHead(200, { location: "/empty" }).end("here");
    });
    const fetcher = open({ allow: [door.origin] });
    expect((await fetcher.get(`${door.origin}/`, signal)).bytes.toString()).to.equal("here");
    expect((await fetcher.get(`${door.origin}/empty`, signal)).bytes.length).to.equal(0);
  });

  it("follows no redirect without a target, or to an invalid URL", async () => {
    const door = await start((request, response) => {
      response.writeHead(302, request.url === "/odd" ? { location: "http://[" } : {}).end();
    });
    const fetcher = open({ allow: [door.origin] });
    expect(await errorOf(fetcher.get(`${door.origin}/none`, signal))).to.include({
      code: "source_unreachable",
      message: "The URL answered with status 302.",
    });
    expect(await errorOf(fetcher.get(`${door.origin}/odd`, signal))).to.include({
      code: "source_refused",
      message: "This URL is not fetched. It redirects to something that is not a URL.",
    });
  });

  it("accepts every encoding that it can decode, and names the product", async () => {
    const asked: Record<string, string | string[] | undefined>[] = [];
    const door = await start((request, response) => {
      asked.push(request.headers);
      response.end();
    });
    const { bytes, ...rest } = await open({ allow: [door.origin] }).get(door.origin, signal);
    expect(asked[0]).to.include({ accept: "*/*", "accept-encoding": "gzip, br", "user-agent": "switchyard" });
    expect([bytes.length, rest], "an answer without body and type").to.deep.equal([0, { url: `${door.origin}/` }]);
  });

  it("reports the type and the final URL, and unpacks gzip", async () => {
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
      const error = await errorOf(open({ allow: [door.origin] }).get(door.origin + path, signal));
      expect(error, path).to.include({ code: "request_too_large", param: "url" });
    }
  });

  it("accepts a body exactly as large as the limit, declared or streamed", async () => {
    const whole = Buffer.alloc(MAX_BYTES, "a");
    const door = await start((request, response) => {
      if (request.url === "/declared") response.writeHead(200, { "content-length": MAX_BYTES });
      response.end(whole);
    });
    for (const path of ["/declared", "/streamed"]) {
      const { bytes } = await open({ allow: [door.origin] }).get(door.origin + path, signal);
      expect(bytes.length, path).to.equal(MAX_BYTES);
    }
  });

  it("refuses an encoding that it cannot decode", async () => {
    const door = await start((_request, response) =>
      response.writeHead(200, { "content-encoding": "compress" }).end("x"),
    );
    expect(await codeOf(open({ allow: [door.origin] }).get(door.origin, signal))).to.equal("source_unreadable");
  });

  it("gives up on a server that never ends", async () => {
    const drips: NodeJS.Timeout[] = [];
    const door = await start((_request, response) => drips.push(setInterval(() => response.write("."), 20)));
    try {
      const fetcher = open({ allow: [door.origin], timeoutMs: 400 });
      expect(await codeOf(fetcher.get(door.origin, signal))).to.equal("source_unreachable");
    } finally {
      drips.forEach(clearInterval);
    }
  });

  it("gives up on a silent server", async () => {
    const door = await start(() => undefined);
    const fetcher = open({ allow: [door.origin], timeoutMs: 200 });
    expect(await codeOf(fetcher.get(door.origin, signal))).to.equal("source_unreachable");
  });

  for (const [status, retryable] of [
    ...[408, 425, 429, 500, 502, 503, 504].map((passing) => [passing, true] as const),
    ...[400, 401, 403, 404, 410, 501].map((lasting) => [lasting, false] as const),
  ]) {
    it(`reports status ${status} as one that ${retryable ? "may pass" : "lasts"}`, async () => {
      const door = await start((_request, response) => response.writeHead(status).end());
      const error = await errorOf(open({ allow: [door.origin] }).get(door.origin, signal));
      expect(error).to.include({ code: "source_unreachable", retryable, param: "url" });
    });
  }

  it("says which failures are transient: a 503 is, a 404 and a picture are not", async () => {
    const door = await start((request, response) => {
      const type = request.url === "/picture" ? "image/png" : "text/plain";
      const status = { "/busy": 503, "/gone": 404 }[request.url ?? ""] ?? 200;
      response.writeHead(status, { "content-type": type }).end("x");
    });
    const failureOf = async (path: string) => {
      const error = await errorOf(open({ allow: [door.origin] }).get(door.origin + path, signal));
      return { code: error?.code, retryable: error?.retryable };
    };
    expect(await failureOf("/busy")).to.deep.equal({ code: "source_unreachable", retryable: true });
    expect(await failureOf("/gone")).to.deep.equal({ code: "source_unreachable", retryable: false });
    expect(await failureOf("/picture")).to.deep.equal({ code: "source_unreadable", retryable: false });
  });

  it("ends with the caller's signal", async () => {
    const door = await start(() => undefined);
    const controller = new AbortController();
    const fetching = open({ allow: [door.origin], timeoutMs: 600_000 }).get(door.origin, controller.signal);
    const reason = new Error("Stopped.");
    controller.abort(reason);
    expect(await fetching.catch((error: unknown) => error)).to.equal(reason);
  });
});
