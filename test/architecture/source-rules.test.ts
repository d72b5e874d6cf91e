import { expect } from "chai";
import fc from "fast-check";
import { z } from "zod";
import { providerIds } from "../../src/gateway/providers/registry.ts";
import { queues } from "../../src/jobs/queues.ts";
import { sourceFiles } from "./source-files.ts";

const MAX_LINES = 300;
const MAX_TEST_LINES = 500;
const MAX_PAYLOAD_BYTES = 1_024;
const silentSkip = /\b(?:this|context|it|describe)\.skip\(|\bx(?:it|describe)\(|\.only\(/;

describe("the rules of the source", () => {
  it(`keeps files under ${MAX_LINES} lines, tests under ${MAX_TEST_LINES}`, () => {
    const lines = (text: string) => text.split("\n").length - 1;
    const long = [
      ...sourceFiles("src", "api", "workers", "scripts").filter(({ text }) => lines(text) > MAX_LINES),
      ...sourceFiles("test").filter(({ text }) => lines(text) > MAX_TEST_LINES),
    ].map(({ path, text }) => `${path}: ${lines(text)}; find the second idea in it`);
    expect(long).to.deep.equal([]);
  });

  it("reads the environment in src/config/config.ts alone", () => {
    const readers = sourceFiles("src", "api", "workers")
      .filter(({ path, text }) => path !== "src/config/config.ts" && /process\.env\b/.test(text))
      .map(({ path }) => `${path}: take the part of Config that it needs as an argument`);
    expect(readers).to.deep.equal([]);
  });

  it("skips no test without a reason in its title", () => {
    const silent = sourceFiles("test")
      .filter(({ path, text }) => path !== "test/support/skip-test.ts" && silentSkip.test(text))
      .map(({ path }) => `${path}: skip by test/support/skip-test.ts`);
    expect(silent).to.deep.equal([]);
  });

  it("names each queue in src/jobs/queues.ts alone", () => {
    const names = Object.values(queues).map((queue) => queue.name);
    const strings = sourceFiles("src", "api", "workers")
      .filter(({ path }) => !["src/jobs/queues.ts", "src/store/job-record.ts"].includes(path))
      .flatMap(({ path, text }) =>
        names
          .filter((name) => new RegExp(`["'\`]${name}["'\`]`).test(text))
          .map((name) => `${path}: "${name}"; import the queue`),
      );
    expect(strings).to.deep.equal([]);
  });

  it("names each provider in src/gateway/providers/registry.ts alone", () => {
    const literal = new RegExp(`(?:=|\\(|\\[|,|\\||:|case) *["'](?:${providerIds.join("|")})["']`);
    const files = sourceFiles("src")
      .filter(({ path, text }) => path !== "src/gateway/providers/registry.ts" && literal.test(text))
      .map(({ path }) => `${path}: put what differs on the provider's or the model's value`);
    expect(files).to.deep.equal([]);
  });

  it(`has payloads of ids only, strict and under ${MAX_PAYLOAD_BYTES} bytes`, () => {
    for (const queue of Object.values(queues)) {
      const schema = z.toJSONSchema(queue.payload) as PayloadSchema;
      expect(schema.additionalProperties, `${queue.name} takes unknown fields`).to.equal(false);
      fc.assert(
        fc.property(payloads(queue.name, schema), (payload) => {
          expect(queue.payload.safeParse(payload).success, `${JSON.stringify(payload)} is refused`).to.equal(true);
          expect(Buffer.byteLength(JSON.stringify(payload)), queue.name).to.be.lessThan(MAX_PAYLOAD_BYTES);
        }),
      );
    }
  });
});

type PayloadSchema = {
  additionalProperties?: unknown;
  properties?: Record<string, { const?: unknown; enum?: unknown[]; pattern?: string; type?: string }>;
};

/** Payloads that the schema allows; a field that could hold any text fails the test. */
function payloads(queue: string, { properties = {} }: PayloadSchema) {
  const fields = Object.entries(properties).map(([field, { const: only, enum: some, pattern, type }]) => {
    if (only !== undefined) return [field, fc.constant(only)] as const;
    if (some) return [field, fc.constantFrom(...some)] as const;
    if (pattern) return [field, fc.stringMatching(new RegExp(pattern))] as const;
    if (type === "integer" || type === "boolean") return [field, type === "boolean" ? fc.boolean() : fc.nat()] as const;
    throw new Error(`${queue}.${field} is free text: keep it in the store and send its id`);
  });
  return fc.record(Object.fromEntries(fields));
}
