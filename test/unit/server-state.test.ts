import { expect } from "chai";
import { countTokensBodySchema } from "../../src/surfaces/messages/schemas.ts";
import { visibleTurns } from "../../src/surfaces/messages/server-state.ts";

const said = (text: string) => ({
  role: "assistant",
  content: [
    { type: "thinking", thinking: `About ${text}`, signature: "c2ln" },
    { type: "text", text },
  ],
});
const asked = (text: string) => ({ role: "user", content: text });
const called = { role: "assistant", content: [{ type: "thinking", thinking: "About a call", signature: "c2ln" }] };
const result = { role: "user", content: [{ type: "tool_result", tool_use_id: "call_1", content: "Rain." }] };

describe("the turns that a model sees", () => {
  const thoughtsOf = (messages: readonly object[], edit?: object) => {
    const management = edit && { edits: [{ type: "clear_thinking_20251015", ...edit }] };
    const body = { model: "small", messages, ...(management && { context_management: management }) };
    return visibleTurns(countTokensBodySchema.parse(body)).flatMap(({ turn: { content } }) =>
      typeof content === "string"
        ? []
        : content.flatMap((block) => (block.type === "thinking" ? [block.thinking] : [])),
    );
  };
  const turns = [asked("1?"), said("one"), asked("2?"), called, result, said("two"), asked("3?")];

  it("have all thinking without an edit, and where all is to be kept", () => {
    const all = ["About one", "About a call", "About two"];
    expect(thoughtsOf(turns)).to.deep.equal(all);
    expect(thoughtsOf(turns, { keep: "all" })).to.deep.equal(all);
    expect(thoughtsOf(turns, { keep: { type: "all" } })).to.deep.equal(all);
    expect(thoughtsOf(turns, { keep: { type: "thinking_turns", value: 2 } })).to.deep.equal(all);
  });

  it("keep the thinking of the last turn alone otherwise, with that of its calls of tools", () => {
    expect(thoughtsOf(turns, {})).to.deep.equal(["About a call", "About two"]);
    expect(thoughtsOf(turns.slice(0, -1), {})).to.deep.equal(["About a call", "About two"]);
    expect(thoughtsOf([asked("1?"), said("one"), asked("2?"), called, result], {})).to.deep.equal(["About a call"]);
  });

  it("begin with the last summary, and keep their places", () => {
    const summary = { role: "assistant", content: [{ type: "compaction", content: "Leases." }] };
    const failed = { role: "assistant", content: [{ type: "compaction", content: null }] };
    const body = { model: "small", messages: [asked("1?"), summary, asked("2?"), failed, asked("3?")] };
    const places = visibleTurns(countTokensBodySchema.parse(body)).map(({ place }) => place);
    expect(places).to.deep.equal([1, 2, 3, 4]);
  });
});
