import { expect } from "chai";
import { makeStaleWhileRevalidate } from "../../src/lib/stale-while-revalidate.ts";

describe("a value that is forgotten while it is read", () => {
  const begin = () => {
    const reads: PromiseWithResolvers<string>[] = [];
    const cache = makeStaleWhileRevalidate<string>(() => {
      const read = Promise.withResolvers<string>();
      reads.push(read);
      return read.promise;
    });
    return { cache, reads };
  };

  for (const [name, forget] of [
    ["by its key", (cache: ReturnType<typeof begin>["cache"]) => cache.forget("key")],
    ["with all that fit", (cache: ReturnType<typeof begin>["cache"]) => cache.forgetWhere(() => true)],
  ] as const) {
    it(`is not kept as it was read before, ${name}`, async () => {
      const { cache, reads } = begin();
      const before = cache.find("key");
      forget(cache);
      reads[0]?.resolve("old");
      expect(await before).to.equal("old");
      const after = cache.find("key");
      expect(reads).to.have.length(2);
      reads[1]?.resolve("new");
      expect(await after).to.equal("new");
      expect(cache.find("key")).to.equal("new");
    });
  }

  it("is read once by those who ask at the same time", async () => {
    const { cache, reads } = begin();
    const both = [cache.find("key"), cache.find("key")];
    reads[0]?.resolve("value");
    expect(await Promise.all(both)).to.deep.equal(["value", "value"]);
    expect(reads).to.have.length(1);
  });
});
