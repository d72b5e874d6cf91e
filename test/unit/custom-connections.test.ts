import type { LookupFunction } from "node:net";
import { expect } from "chai";
import { Binary } from "mongodb";
import { makeConnections } from "../../src/gateway/providers/custom/connections.ts";
import { AppError } from "../../src/lib/errors.ts";
import { makeLogger } from "../../src/observe/logger.ts";
import type { CustomProviderRecord } from "../../src/store/custom-provider-store.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";

const PUBLIC = "93.184.215.14";
const timeouts = { connectMs: 500, firstByteMs: 1_000, idleMs: 1_000 };
const request = { model: "small", messages: [{ role: "user" as const, content: "Hello" }] };

describe("connections to custom providers", () => {
  let upstream: FakeProvider;
  before(async () => {
    upstream = await startFakeProvider();
  });
  after(() => upstream.close());

  /** A provider at a name that resolves to these addresses, at the port of the fake one. */
  function recordAt(host: string): CustomProviderRecord {
    const at = new Date();
    const { port } = new URL(upstream.origin);
    const settings = { baseUrl: `http://${host}:${port}/v1`, wire: "openai-chat", models: [] };
    const key = { sealed: new Binary(), preview: "…", createdAt: at, updatedAt: at };
    return { _id: "ten:lab", tenantId: "ten", name: "lab", ...settings, ...key };
  }
  const resolvingTo = (addresses: string[]): LookupFunction => {
    return (_name, _options, done) =>
      done(
        null,
        addresses.map((address) => ({ address, family: 4 })),
      );
  };
  const connect = (addresses: string[], allowOrigins: string[] = []) =>
    makeConnections({
      lookup: resolvingTo(addresses),
      allowOrigins,
      timeouts,
      logger: makeLogger({ level: "silent", name: "test" }),
    });

  it("are refused at the connection when a name resolves to an address that is not public", async () => {
    for (const addresses of [["127.0.0.1"], [PUBLIC, "127.0.0.1"], ["169.254.169.254"], []]) {
      const connections = connect(addresses);
      try {
        const context = { signal: new AbortController().signal, apiKey: "sk-own-0123456789abcdef" };
        const failed = await connections
          .open(recordAt("models.example.com"))
          .complete(request, context)
          .then(
            () => undefined,
            (error: unknown) => error,
          );
        expect(failed, addresses.join())
          .to.be.instanceOf(AppError)
          .and.deep.include({
            code: "provider_failed",
            details: { code: "address_refused" },
            retryable: false,
          });
      } finally {
        await connections.close();
      }
    }
    expect(upstream.requests).to.deep.equal([]);
  });

  it("are refused when the operator does not allow the origin any more", async () => {
    const allowed = connect([], [upstream.origin]);
    const context = { signal: new AbortController().signal };
    try {
      expect((await allowed.open(recordAt("127.0.0.1")).complete(request, context)).text).not.to.equal("");
    } finally {
      await allowed.close();
    }
    expect(() => connect([]).open(recordAt("127.0.0.1"))).to.throw(AppError, "Its address is not public");
  });

  it("are kept while the settings stay, and let calls under way end when they change", async () => {
    const connections = connect([], [upstream.origin]);
    const context = { signal: new AbortController().signal };
    try {
      const record = recordAt("127.0.0.1");
      const provider = connections.open(record);
      expect(connections.open({ ...record, updatedAt: new Date(0) }), "another key alone").to.equal(provider);
      const gate = Promise.withResolvers<void>();
      upstream.next({ until: gate.promise });
      const answer = provider.complete(request, context);
      expect(connections.open({ ...record, wire: "anthropic-messages" })).not.to.equal(provider);
      connections.drop(record._id);
      gate.resolve();
      expect((await answer).text).to.equal("The lease protects a job.");
    } finally {
      await connections.close();
    }
  });
});
