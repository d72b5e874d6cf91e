import { Binary, Double, Long, ObjectId } from "bson";
import { expect } from "chai";
import fc from "fast-check";
import { compareValues } from "../../src/embedded/mongo/bson/compare.ts";

const scalar = fc.oneof(
  fc.constantFrom<unknown>(null, undefined, Number.NaN, -0, 0, "", true, false),
  fc.integer(),
  fc.double(),
  fc.double().map((value) => new Double(value)),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((value) => Long.fromBigInt(value)),
  fc.integer({ min: -5, max: 5 }).map((value) => Long.fromNumber(value)),
  fc.string({ unit: "binary" }),
  fc.date({ noInvalidDate: true }),
  fc.uint8Array({ maxLength: 4 }).map((bytes) => new Binary(bytes)),
  fc.uint8Array({ minLength: 12, maxLength: 12 }).map((bytes) => new ObjectId(bytes)),
);
const value = fc.oneof(
  { weight: 3, arbitrary: scalar },
  fc.array(scalar, { maxLength: 3 }),
  fc.dictionary(fc.constantFrom("a", "b", "c"), scalar, { maxKeys: 3, noNullPrototype: true }),
);

describe("the order of BSON values", () => {
  it("is a total order over values of all types", () => {
    const property = fc.property(value, value, value, (a, b, c) => {
      expect(compareValues(a, a)).to.equal(0);
      expect(compareValues(a, b) + compareValues(b, a)).to.equal(0);
      // Boxed, because JavaScript's sort puts undefined last without asking.
      const boxed = [{ value: a }, { value: b }, { value: c }].toSorted((x, y) => compareValues(x.value, y.value));
      const [low, middle, high] = boxed.map((box) => box.value);
      expect(compareValues(low, middle)).to.be.at.most(0);
      expect(compareValues(middle, high)).to.be.at.most(0);
      expect(compareValues(low, high)).to.be.at.most(0);
    });
    fc.assert(property, { numRuns: 3_000 });
  });

  it("finds numbers of all types equal", () => {
    const twins = fc.integer().map((n) => [n, new Double(n), Long.fromNumber(n)]);
    const property = fc.property(twins, (values) => {
      for (const twin of values) expect(compareValues(twin, values[0])).to.equal(0);
    });
    fc.assert(property, { numRuns: 2_000 });
  });

  it("orders strings as their UTF-8 bytes", () => {
    const text = fc.string({ unit: "binary" });
    const property = fc.property(text, text, (a, b) => {
      expect(compareValues(a, b)).to.equal(Buffer.compare(Buffer.from(a), Buffer.from(b)));
    });
    fc.assert(property, { numRuns: 2_000 });
  });

  it("orders a double against a long exactly", () => {
    expect(compareValues(9007199254740992, Long.fromString("9007199254740993"))).to.equal(-1);
    expect(compareValues(Long.MAX_VALUE, 2 ** 63)).to.equal(-1);
    expect(compareValues(Long.MIN_VALUE, Number.NEGATIVE_INFINITY)).to.equal(1);
    expect(compareValues(Number.NaN, Long.ZERO)).to.equal(-1);
  });
});
