import { expect } from "chai";
import fc from "fast-check";
import { Binary, BSON, Double, Long, ObjectId, UUID } from "mongodb";
import { decodeDocument, encodeDocument } from "../../src/embedded/mongo/bson/codec.ts";

const leaf = fc.oneof(
  fc.integer(),
  fc.double(),
  fc.string({ unit: "binary", maxLength: 12 }),
  fc.boolean(),
  fc.constant(null),
  fc.date({ noInvalidDate: true }),
  fc.uint8Array({ maxLength: 20 }).map((bytes) => new Binary(bytes)),
  fc.array(fc.float({ noNaN: true }), { maxLength: 4 }).map((list) => Binary.fromFloat32Array(new Float32Array(list))),
  fc.constantFrom(
    new UUID("8e5a9d3c-0b4e-4ad9-9a57-0f53a7f6a111"),
    new ObjectId("65a000000000000000000001"),
    new Binary(new Uint8Array([1, 2, 3]), 128),
  ),
);
const name = fc.oneof(
  fc.string({ maxLength: 8 }).filter((text) => !text.includes("\0")),
  fc.constantFrom("__proto__", "é", "a".repeat(60)),
);
const { document } = fc.letrec((tie) => ({
  value: fc.oneof({ maxDepth: 3 }, leaf, fc.array(tie("value"), { maxLength: 4 }), tie("document")),
  document: fc.dictionary(name, tie("value"), { maxKeys: 6, noNullPrototype: true }),
}));

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

describe("embedded store: reading stored documents", () => {
  it("writes documents with the bytes that it read, for every stored type", () => {
    const check = fc.property(document, (value) => {
      const bytes = encodeDocument(Object(value));
      expect(hex(encodeDocument(decodeDocument(bytes)))).to.equal(hex(bytes));
    });
    fc.assert(check, { numRuns: 2_000 });
  });

  it("reads longs and doubles as plain numbers", () => {
    const bytes = BSON.serialize({ long: Long.fromString("-9007199254740991"), double: new Double(3), int: 7 });
    expect(decodeDocument(bytes)).to.deep.equal({ long: -9_007_199_254_740_991, double: 3, int: 7 });
  });
});
