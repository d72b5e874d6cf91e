import { expect } from "chai";
import { makeStringBuilder } from "../../src/gateway/chat/streamed-response.ts";

describe("a text that grows by tokens", () => {
  it("is all of its parts in order, whenever it is read", () => {
    const grown = makeStringBuilder();
    expect(grown.text()).to.equal("");
    let expected = "";
    for (let n = 0; n < 1_000; n++) {
      grown.add(`${n} `);
      expected += `${n} `;
      if (n % 7 === 0 || n === 31 || n === 32) expect(grown.text()).to.equal(expected);
    }
    expect(grown.text()).to.equal(expected);
  });
});
