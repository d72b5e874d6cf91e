import { expect } from "chai";
import { makeStreamedResponse } from "../../src/gateway/chat/streamed-response.ts";
import { forProvider, type Message, markReasoning } from "../../src/gateway/messages.ts";

const thought = (text: string) => ({ type: "thinking", thinking: text, signature: `signature of ${text}` });

describe("the parts of a turn", () => {
  it("keep the order in which a stream gave them", () => {
    const response = makeStreamedResponse();
    const deltas = response.take(
      [
        { type: "reasoning-item", item: thought("first") },
        { type: "text-delta", text: "I look " },
        { type: "text-delta", text: "it up." },
        { type: "reasoning-item", item: thought("second") },
        { type: "tool-call-delta", index: 0, id: "call_1", name: "find", argumentsDelta: '{"q":' },
        { type: "tool-call-delta", index: 0, argumentsDelta: '"lease"}' },
        { type: "reasoning-item", item: thought("third") },
        { type: "tool-call-delta", index: 1, id: "call_2", name: "find", argumentsDelta: "{}" },
        { type: "text-delta", text: "Done." },
      ],
      "anthropic",
    );
    expect(deltas.filter(({ type }) => type === "text-delta")).to.have.length(3);
    expect(deltas).to.have.length(9);
    expect(deltas[0]).to.deep.equal({ type: "reasoning-item", provider: "anthropic", item: thought("first") });
    expect(response.parts()).to.deep.equal([
      { type: "reasoning", item: thought("first") },
      { type: "text", text: "I look it up." },
      { type: "reasoning", item: thought("second") },
      { type: "tool-call", id: "call_1", name: "find", arguments: '{"q":"lease"}' },
      { type: "reasoning", item: thought("third") },
      { type: "text", text: "Done." },
      { type: "tool-call", id: "call_2", name: "find", arguments: "{}" },
    ]);
  });

  it("are not there for a stream without reasoning that must go back", () => {
    const response = makeStreamedResponse();
    response.take(
      [
        { type: "reasoning-delta", text: "hm" },
        { type: "text-delta", text: "Yes." },
      ],
      "anthropic",
    );
    expect(response.parts()).to.equal(undefined);
  });

  it("go back to the provider that made them, and to no other", () => {
    const parts = markReasoning(
      [
        { type: "reasoning", item: thought("first") },
        { type: "text", text: "Yes." },
      ],
      "anthropic",
    );
    const messages: Message[] = [
      { role: "user", content: "Is it so?" },
      { role: "assistant", content: "Yes.", parts },
    ];
    expect(forProvider(messages, "anthropic")).to.deep.equal(messages);
    expect(forProvider(messages, "openai")).to.deep.equal([messages[0], { role: "assistant", content: "Yes." }]);
    const mixed: Message = {
      role: "assistant",
      content: "Yes.",
      parts: [...parts, ...markReasoning([{ type: "reasoning", item: thought("other") }], "openai")],
    };
    expect(forProvider([mixed], "anthropic")).to.deep.equal([{ ...mixed, parts }]);
    const plain = messages.slice(0, 1);
    expect(forProvider(plain, "openai")).to.equal(plain); // the same list: a chat of texts costs nothing
  });
});
