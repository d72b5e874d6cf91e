import { Binary, ObjectId } from "bson";
import { expect } from "chai";
import fc from "fast-check";
import { compareValues } from "../../src/embedded/mongo/bson/order.ts";

const scalar = fc.oneof(
  fc.constantFrom<unknown>(null, undefined, Number.NaN, -0, 0, "", true, false),
  fc.integer(),
  fc.double(),
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

  it("orders strings as their UTF-8 bytes", () => {
    const text = fc.string({ unit: "binary" });
    const property = fc.property(text, text, (a, b) => {
      expect(compareValues(a, b)).to.equal(Buffer.compare(Buffer.from(a), Buffer.from(b)));
    });
    fc.assert(property, { numRuns: 2_000 });
  });

  it("puts NaN before all other numbers, and null before every value of another type", () => {
    expect(compareValues(Number.NaN, Number.NEGATIVE_INFINITY)).to.equal(-1);
    expect(compareValues(Number.NaN, Number.NaN)).to.equal(0);
    expect(compareValues(null, Number.NaN)).to.equal(-1);
  });
});
