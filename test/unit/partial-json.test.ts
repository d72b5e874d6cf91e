import { expect } from "chai";
import { parsePartialJson } from "../../src/gateway/providers/partial-json.ts";

const whole = '{"id":"a","choices":[{"text":"He said: \\"no\\", and é \\u00e9","n":12}],"usage":{"tokens":7}}';

describe("JSON that broke off", () => {
  it("is read as far as it came, wherever it broke off", () => {
    const { choices, usage } = JSON.parse(whole);
    const [{ text }] = choices;
    for (let end = 1; end < whole.length; end++) {
      const begun = parsePartialJson(whole.slice(0, end)) as typeof choices; // any part of the whole
      expect(begun, `the first ${end} characters`).to.be.an("object");
      const said = begun.choices?.[0]?.text ?? "";
      expect(text.startsWith(said), `${JSON.stringify(said)} is a part of the text`).to.equal(true);
      expect([undefined, usage.tokens]).to.include(begun.usage?.tokens);
    }
    expect(parsePartialJson(whole.slice(0, whole.indexOf("He said") + 7))).to.deep.equal({
      id: "a",
      choices: [{ text: "He said" }],
    });
    expect(parsePartialJson(whole)).to.deep.equal(JSON.parse(whole));
  });

  it("takes linear time, however deep its brackets are", () => {
    const text = `${"[".repeat(300_000)}${"[],".repeat(200_000)}`;
    expect(Array.isArray(parsePartialJson(text))).to.equal(true);
  });

  it("is undefined when it is not JSON", () => {
    for (const text of ["", "<html>", "Bad gateway", "]", '{"a":}']) expect(parsePartialJson(text)).to.equal(undefined);
  });
});
