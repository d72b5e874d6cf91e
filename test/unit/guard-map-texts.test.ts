import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { mapTexts } from "../../src/guards/map-texts.ts";

const seen = (value: unknown, isWire: boolean) => {
  const texts: { text: string; place: string; isId?: boolean }[] = [];
  mapTexts(value, { place: "input", field: "", isWire }, ({ text, place, isId }) => {
    texts.push({ text, place, ...(isId && { isId }) });
    return text;
  });
  return texts;
};
const textsOf = (value: unknown, isWire: boolean) => seen(value, isWire).map(({ text }) => text);
const png = Buffer.concat([Buffer.from("89504e470d0a1a0a0000000d49484452", "hex"), randomBytes(300)]).toString(
  "base64",
);
const sealed = randomBytes(300).toString("base64");

describe("the texts of a value that guards read", () => {
  it("leave out what a vendor's wire has sealed, and bytes, in their places alone", () => {
    const wire = [
      { type: "thinking", thinking: "Hm.", signature: sealed },
      { type: "redacted_thinking", data: sealed },
      { type: "reasoning", summary: [], encrypted_content: sealed },
      { type: "image", source: { type: "base64", media_type: "image/png", data: png } },
      { type: "image_url", image_url: { url: `data:image/png;base64,${png}` } },
    ];
    for (const text of [sealed, png, `data:image/png;base64,${png}`]) expect(textsOf(wire, true)).not.to.include(text);
    expect(textsOf(wire, true)).to.include("Hm.");
    expect(textsOf(wire, false)).to.include.members([sealed, png]);
    expect(textsOf({ signature: sealed, type: "base64", encrypted_content: sealed }, true)).to.deep.equal([
      sealed,
      "base64",
      sealed,
    ]);
  });

  it("have a text that stands where something sealed or bytes should be", () => {
    const text = "219-09-8642 is his number";
    const encoded = Buffer.from(text.repeat(9)).toString("base64");
    const wire = [
      { type: "thinking", signature: text },
      { type: "redacted_thinking", data: text },
      { type: "reasoning", encrypted_content: text },
      { type: "image", source: { type: "base64", media_type: "image/png", data: text } },
    ];
    expect(textsOf(wire, true).filter((one) => one === text)).to.have.length(4);
    expect(textsOf({ source: { type: "base64", data: encoded } }, true)).to.include(encoded);
    expect(textsOf({ url: `data:image/png;base64,${encoded}` }, true)).to.include(`data:image/png;base64,${encoded}`);
  });

  it("are of a tool's place in a vendor's wire alone, and a caller's own objects in it are the caller's", () => {
    const call = {
      type: "tool_use",
      id: "toolu_1",
      input: { type: "redacted_thinking", data: sealed, call_id: "c 1" },
    };
    expect(seen(call, true)).to.deep.include.members([
      { text: sealed, place: "toolInput" },
      { text: "c 1", place: "toolInput" },
    ]);
    expect(new Set(seen(call, false).map(({ place }) => place))).to.deep.equal(new Set(["input"]));
    expect(seen({ type: "function_call", call_id: "call_219-09-8642" }, true)).to.deep.include({
      text: "219-09-8642",
      place: "toolInput",
      isId: true,
    });
  });

  it("have numbers of any size and sign", () => {
    expect(textsOf({ ssn: -219098642, card: 4012888888881881000 }, false)).to.deep.equal([
      "-219098642",
      "4012888888881881000",
    ]);
  });
});
