import { expect } from "chai";
import { makeReasoning, toRecordedParts } from "../../src/agents/reasoning.ts";
import type { AssistantPart, Message, ToolCall } from "../../src/gateway/messages.ts";

const callOf = (id: string): ToolCall => ({ id, name: "find", arguments: "{}" });
const turnOf = (ids: readonly string[], text = "") => {
  const toolCalls = ids.map(callOf);
  const item = { type: "thinking", thinking: text, signature: "c2ln" };
  const parts: AssistantPart[] = [
    { type: "reasoning", provider: "anthropic", item },
    ...toolCalls.map((call) => ({ type: "tool-call" as const, ...call })),
  ];
  return { toolCalls, parts };
};
const messageOf = ({ toolCalls }: { toolCalls: ToolCall[] }): Message => ({
  role: "assistant",
  content: "",
  toolCalls,
});
const record = (turn: ReturnType<typeof turnOf>) => toRecordedParts(turn, { isKnown: (id) => id === "old", most: 2 });

describe("reasoning in an agent's run", () => {
  it("is recorded with the ids of its calls, and goes back in its own turn", () => {
    const turn = turnOf(["toolu_1", "toolu_2"]);
    const { parts = "", areIdsKept } = record(turn);
    expect(areIdsKept).to.equal(true);
    const reasoning = makeReasoning();
    reasoning.take(parts, "toolu_1");
    expect(reasoning.addTo(messageOf(turn))).to.deep.equal({ ...messageOf(turn), parts: turn.parts });
    const others: Message[] = [
      messageOf(turnOf(["toolu_3"])),
      { role: "assistant", content: "a" },
      { role: "user", content: "b" },
    ];
    for (const other of others) expect(reasoning.addTo(other)).to.equal(other);
  });

  it("is nothing where there is none", () => {
    expect(toRecordedParts({ toolCalls: [callOf("a")] }, { isKnown: () => false, most: 2 })).to.deep.equal({
      areIdsKept: false,
    });
  });

  const unfit: [why: string, turn: ReturnType<typeof turnOf>][] = [
    ["an id comes twice in the turn", turnOf(["toolu_1", "toolu_1"])],
    ["an id came before", turnOf(["old"])],
    ["an id is one that providers refuse", turnOf(["a b"])],
    ["not all calls are made", turnOf(["a", "b", "c"])],
    ["it is too long", turnOf(["a"], "x".repeat(2_000_000))],
  ];
  for (const [why, turn] of unfit)
    it(`does not go back, nor does any before it, when ${why}`, () => {
      const whole = turnOf(["toolu_9"]);
      const reasoning = makeReasoning();
      reasoning.take(record(whole).parts ?? "", "toolu_9");
      const { parts = "", areIdsKept } = record(turn);
      expect(areIdsKept).to.equal(false);
      reasoning.take(parts, "call_1_1");
      expect(reasoning.addTo(messageOf(whole))).to.deep.equal(messageOf(whole));
      const later = turnOf(["toolu_10"]);
      reasoning.take(record(later).parts ?? "", "toolu_10");
      expect(reasoning.addTo(messageOf(later))).to.deep.equal({ ...messageOf(later), parts: later.parts });
    });
});
