import { expect } from "chai";
import { makeCatalogue } from "../../src/gateway/catalogue.ts";
import { makeAnswerer } from "../../src/gateway/chat/answer.ts";
import { planChat } from "../../src/gateway/chat/plan.ts";
import type { GatewayDeps } from "../../src/gateway/deps.ts";
import type { Provider } from "../../src/gateway/providers/provider.ts";
import { makeBreakers } from "../../src/gateway/resilience/breaker.ts";
import { makeShares } from "../../src/isolation/shares.ts";
import { AppError } from "../../src/lib/errors.ts";
import type { ProviderKey } from "../../src/tenancy/provider-keys.ts";

const request = { model: "gpt-5.4-nano", messages: [{ role: "user" as const, content: "hi" }] };
const caller = (tenantId: string) => ({
  tenantId,
  keyId: "key_1",
  surface: "api",
  signal: new AbortController().signal,
});
const tenantKey = (tenantId: string): ProviderKey => ({
  keyId: `own-${tenantId}`,
  apiKey: `sk-of-${tenantId}`,
  source: "tenant",
});

/** A gateway whose provider OpenAI is a function. */
function makeDeps(
  find: GatewayDeps["keys"]["find"],
  answer: (apiKey: string | undefined) => Promise<string>,
): GatewayDeps {
  const provider: Provider = {
    complete: async (wire, { apiKey }) => ({
      text: await answer(apiKey),
      toolCalls: [],
      finishReason: "stop",
      model: wire.model,
    }),
    stream: async function* (_wire, { apiKey }) {
      yield [
        { type: "text-delta", text: await answer(apiKey) },
        { type: "end", finishReason: "stop" },
      ];
    },
  };
  return {
    catalogue: makeCatalogue({ baseUrl: undefined, apiKey: undefined, model: "default", embeddingModel: undefined }),
    providers: new Map([["openai", provider]]),
    keys: { find, byId: async () => undefined },
    customProviders: { find: async () => undefined, models: async () => new Map() },
    fallbacks: { find: async () => [] },
    guards: { forCall: async () => undefined, masks: async () => false },
    breakerOf: makeBreakers().of,
    ledger: {
      record: () => undefined,
      write: async () => undefined,
      pending: () => undefined,
      flush: async () => undefined,
      requireTaken: async () => undefined,
      close: async () => undefined,
    },
    budgets: {
      reserve: async () => undefined,
      reserveForLater: async () => undefined,
      settleLater: async () => undefined,
      view: async () => null,
      setOwn: async () => undefined,
      set: async () => undefined,
      flush: async () => undefined,
    },
    runBudgets: { reserve: async () => expect.fail("no run makes these calls") },
    schemaChecks: { checkDefinition: async () => undefined, checkInput: async () => undefined },
    callTexts: { areKept: async () => false },
    largeStreams: makeShares({ size: 64, perOwner: 16 }),
    maxAttempts: 5,
  };
}

function chatOf(deps: GatewayDeps) {
  const { plan, answer, stream } = makeAnswerer(deps, { get: async () => null, put: () => undefined });
  type Asked = Parameters<typeof plan>;
  return {
    complete: async (...asked: Asked) => answer(await plan(...asked)),
    stream: async (...asked: Asked) => Array.fromAsync(stream(await plan(...asked))),
  };
}

describe("keys of a call", () => {
  const errorOf = async (work: Promise<unknown>): Promise<AppError> => {
    const error = await work.catch((thrown: unknown) => thrown);
    if (!(error instanceof AppError)) throw new Error("expected an AppError");
    return error;
  };

  it("uses each tenant's own key", async () => {
    const deps = makeDeps(
      async (tenantId) => tenantKey(tenantId),
      async (apiKey) => apiKey ?? "none",
    );
    expect((await chatOf(deps).complete(caller("a"), request)).text).to.equal("sk-of-a");
    expect((await chatOf(deps).complete(caller("b"), request)).text).to.equal("sk-of-b");
  });

  it("refuses a model for which there is no key", async () => {
    const deps = makeDeps(
      async () => undefined,
      async () => "never",
    );
    const error = await errorOf(chatOf(deps).complete(caller("a"), request));
    expect([error.code, error.param, error.details]).to.deep.equal([
      "provider_not_configured",
      "model",
      { provider: "openai" },
    ]);
  });

  it("says that it is the tenant's key that the provider refused, and never shows it", async () => {
    const deps = makeDeps(
      async (tenantId) => tenantKey(tenantId),
      () => Promise.reject(new AppError("provider_key_refused", "no", { details: { status: 401, code: "sk-of-a" } })),
    );
    const error = await errorOf(chatOf(deps).complete(caller("a"), request));
    expect([error.code, error.details]).to.deep.equal(["provider_key_refused", { provider: "openai", status: 401 }]);
    expect(error.message).not.to.contain("sk-of-a");
  });

  it("skips a provider whose key cannot be read, unless it is named", async () => {
    const unreadable = new AppError("provider_key_unreadable", "no");
    const deps = makeDeps(
      () => Promise.reject(unreadable),
      async () => "never",
    );
    expect(await errorOf(chatOf(deps).complete(caller("a"), request))).to.equal(unreadable);
    const plan = await planChat(deps, "a", { ...request, model: "auto" });
    expect([...plan.keys.keys()]).to.deep.equal(["edge"]);
  });

  it("keeps a breaker for each key, so that one tenant's broken account affects no other", async () => {
    const deps = makeDeps(
      async (tenantId) => tenantKey(tenantId),
      (apiKey) =>
        apiKey === "sk-of-a"
          ? Promise.reject(new AppError("provider_failed", "down", { retryable: true }))
          : Promise.resolve("well"),
    );
    for (let n = 0; n < 2; n++) await errorOf(chatOf(deps).complete(caller("a"), request));
    expect((await errorOf(chatOf(deps).complete(caller("a"), request))).details).to.deep.equal({
      code: "breaker_open",
    });
    expect((await chatOf(deps).complete(caller("b"), request)).text).to.equal("well");
  });

  it("are looked up once a call, also when the cache is consulted first", async () => {
    let lookups = 0;
    const chat = chatOf(
      makeDeps(
        async (tenantId) => ({ ...tenantKey(tenantId), apiKey: `sk-${++lookups}` }),
        async (key) => `${key}`,
      ),
    );
    for (const temperature of [0, 1]) {
      lookups = 0;
      expect((await chat.complete(caller("a"), { ...request, temperature })).text).to.equal("sk-1");
      lookups = 0;
      const events = (await chat.stream(caller("a"), { ...request, temperature })).flat();
      expect(events[0]).to.deep.equal({ type: "text-delta", text: "sk-1" });
      expect(lookups).to.equal(1);
    }
  });
});
