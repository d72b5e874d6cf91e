import { Binary, Decimal128, Double, Long, MaxKey, MinKey, ObjectId } from "bson";
import { expect } from "chai";
import fc from "fast-check";
import { compareValues, equalValues, hashKey } from "../../src/embedded/mongo/compare.ts";

const scalar = fc.oneof(
  fc.constantFrom<unknown>(null, undefined, new MinKey(), new MaxKey(), Number.NaN, -0, 0, "", true, false),
  fc.integer(),
  fc.double(),
  fc.double().map((value) => new Double(value)),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((value) => Long.fromBigInt(value)),
  fc.integer({ min: -5, max: 5 }).map((value) => Long.fromNumber(value)),
  fc.tuple(fc.integer(), fc.integer({ min: -30, max: 30 })).map(([n, e]) => Decimal128.fromString(`${n}E${e}`)),
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

  it("gives equal values equal hash keys", () => {
    const twins = fc.oneof(
      fc.integer().map((n) => [n, new Double(n), Long.fromNumber(n), Decimal128.fromString(String(n))]),
      fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => [n, new Double(n)]),
      fc.tuple(value, value),
    );
    const property = fc.property(twins, (values) => {
      for (const twin of values) if (equalValues(twin, values[0])) expect(hashKey(twin)).to.equal(hashKey(values[0]));
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

  it("orders a double against a decimal and a long exactly", () => {
    expect(compareValues(0.1, Decimal128.fromString("0.1"))).to.equal(1);
    expect(compareValues(9007199254740992, Long.fromString("9007199254740993"))).to.equal(-1);
    expect(compareValues(Decimal128.fromString("1E400"), Number.MAX_VALUE)).to.equal(1);
    expect(compareValues(Decimal128.fromString("1E400"), Number.POSITIVE_INFINITY)).to.equal(-1);
  });
});
