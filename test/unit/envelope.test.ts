import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { KEY_BYTES, open, seal } from "../../src/tenancy/envelope.ts";

describe("an envelope", () => {
  const key = randomBytes(KEY_BYTES);

  for (const length of [0, 1, 1_000]) {
    it(`gives back ${length} bytes, in their own place alone`, () => {
      const plain = randomBytes(length);
      const sealed = seal(key, plain, "here");
      expect(open(key, sealed, "here")).to.deep.equal(plain);
      expect(open(key, sealed, "there")).to.equal(null);
      expect(open(randomBytes(KEY_BYTES), sealed, "here")).to.equal(null);
      expect(open(key, sealed.subarray(0, -1), "here")).to.equal(null);
      expect(open(key, sealed.subarray(0, 27), "here"), "shorter than nonce and tag").to.equal(null);
    });
  }
});
