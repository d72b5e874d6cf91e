import type { ListedModel } from "../../src/gateway/model-schemas.ts";
import type { CustomProviderBody } from "../../src/gateway/providers/custom/schemas.ts";
import { features } from "../../src/gateway/providers/model.ts";
import { type WireName, wireNames, wires } from "../../src/gateway/providers/wires.ts";
import { makeClient } from "./http-client.ts";
import { pollUntil } from "./poll-until.ts";
import { skipTest } from "./skip-test.ts";
import { startPlatform, type TestOptions, type TestPlatform } from "./start-platform.ts";
import { tenantOf } from "./tenant-of.ts";

/** The platform that a suite's clients speak to, and how it reaches the one that has the models. */
export type Target = {
  /** The wire format between a first platform, which clients speak to, and a second one; absent: there is one alone. */
  wire?: WireName;
  /** The name by which clients ask for a model. */
  model(id: string): string;
  /** Starts it; `env` are the settings of the platform that has the models. */
  start(options: TestOptions): Promise<TestPlatform>;
};
/** Why a test does not apply by a wire format; undefined where it does. */
type Reason = (wire: WireName) => string | undefined;

/** The name of the second platform among the custom providers of the first. */
const HOP = "second";

/**
 * Describes a suite of clients, against a platform, and once more by each wire format against one that has such a platform
 * as its custom provider. `leftOut` names the tests that do not apply there, and why.
 */
export function describeTargets(
  title: string,
  leftOut: Readonly<Record<string, Reason>>,
  suite: (this: Mocha.Suite, target: Target) => void,
): void {
  describe(title, function () {
    suite.call(this, { model: (id) => id, start: startPlatform });
  });
  for (const wire of wireNames)
    describe(`${title}, through a second platform by ${wire}`, function () {
      this.timeout(60_000);
      suite.call(this, { wire, model: (id) => `${HOP}/${id}`, start: (options) => startTwo(wire, options) });
      const titles = new Set<string>();
      this.eachTest((test) => void titles.add(test.title));
      const unknown = Object.keys(leftOut).filter((one) => !titles.has(one));
      if (unknown.length > 0) throw new Error(`${title} has no test ${unknown.join(", ")}`);
      beforeEach(function () {
        const reason = leftOut[this.currentTest?.title ?? ""]?.(wire);
        if (reason !== undefined) skipTest(this, reason);
      });
    });
}

/** The reason for which a test is left out by some wire formats, or by all. */
export const notBy =
  (reason: string, ...left: readonly WireName[]): Reason =>
  (wire) =>
    left.length === 0 || left.includes(wire) ? reason : undefined;

/** Waits until the breakers of a target let calls pass again, after its provider has failed. */
export async function untilServed(call: () => Promise<unknown>): Promise<void> {
  const isServed = () =>
    call().then(
      () => true,
      () => false,
    );
  await pollUntil(isServed, { what: "the end of the breakers' pause", everyMs: 100 });
}

/** A platform that has another one as its custom provider, with all models that the wire format takes. */
async function startTwo(wire: WireName, options: TestOptions): Promise<TestPlatform> {
  const second = await startPlatform(options);
  // The second platform has tried a call as often as a platform does: the first one's tries would only take time.
  const env = { FETCH_ALLOW_ORIGINS: second.url, PROVIDER_MAX_ATTEMPTS: "1" };
  const first = await startPlatform({ workers: options.workers ?? true, env });
  const models = await second.platform.gateway.models(await tenantOf(second), { available: "true" });
  const body: CustomProviderBody = {
    wire,
    baseUrl: wire === "anthropic-messages" ? second.url : `${second.url}/v1`,
    key: second.keys.member,
    models: models
      .filter(({ type }) => type !== "embedding" || wires[wire].hasEmbeddings)
      .map((model) => toCustomModel(model, wire)),
  };
  const admin = makeClient({ url: first.url, key: first.keys.admin });
  const set = await admin.request("PUT", `/ai/providers/custom/${HOP}`, { body });
  if (set.status !== 200) throw new Error(set.text);
  return { ...first, close: () => first.close().finally(() => second.close()) };
}

/** A model of a platform's list as a custom provider of another one has it. */
function toCustomModel(listed: ListedModel, wire: WireName): CustomProviderBody["models"][number] {
  const { id, type, contextWindow, inputCostPer1k, outputCostPer1k, supportedFeatures, reasoningEfforts } = listed;
  return {
    id,
    type: type as "chat", // one of the catalogue's
    contextWindow,
    inputUsdPerMTok: inputCostPer1k * 1_000,
    outputUsdPerMTok: outputCostPer1k * 1_000,
    supportedFeatures: features.filter((one) => supportedFeatures.includes(one) && !wires[wire].lacks?.includes(one)),
    reasoningEfforts: reasoningEfforts ?? [],
  };
}
