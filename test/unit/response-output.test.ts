import { expect } from "chai";
import type { ContentDelta } from "../../src/gateway/chat/streamed-response.ts";
import { makeResponseOutput } from "../../src/surfaces/responses/output.ts";
import type { ResponseEvent } from "../../src/surfaces/responses/response-schemas.ts";

const text = (said: string): ContentDelta => ({ type: "text-delta", text: said });
const thought = (said: string): ContentDelta => ({ type: "reasoning-delta", text: said });
const call = (index: number, argumentsDelta: string): ContentDelta => ({
  type: "tool-call-delta",
  index,
  id: `call_${index}`,
  name: "find",
  argumentsDelta,
});

function begin() {
  const events: ResponseEvent[] = [];
  const output = makeResponseOutput({
    toItemId: (kind, place) => `${kind}_${place}`,
    sealing: { isShown: true, isKept: false },
    emit: (event) => void events.push(event),
  });
  return { output, events };
}

describe("the output of a response", () => {
  it("ends each item before the next one begins, and calls that grow in turns together", () => {
    const { output, events } = begin();
    const deltas = [
      thought("hm"),
      text("I look."),
      call(0, "{"),
      call(1, "{"),
      call(0, "}"),
      call(1, "}"),
      text("Done."),
    ];
    for (const delta of [...deltas, thought("so")]) output.take(delta);
    output.end(true);
    const sequence = events.flatMap((event) => {
      if (event.type === "response.output_item.added") return [`+${event.output_index}`];
      return event.type === "response.output_item.done" ? [`-${event.output_index}`] : [];
    });
    expect(sequence.join(" ")).to.equal("+0 -0 +1 -1 +2 +3 -2 -3 +4 -4 +5 -5");
    expect(output.items.map(({ id }) => id)).to.deep.equal(["rs_0", "msg_1", "fc_2", "fc_3", "msg_4", "rs_5"]);
    expect(output.items[3]).to.deep.include({ call_id: "call_1", arguments: "{}", status: "completed" });
  });

  it("takes nothing more of a call that has ended", () => {
    const { output } = begin();
    for (const delta of [call(0, "{}"), text("Done.")]) output.take(delta);
    expect(() => output.take(call(0, "more"))).to.throw("continued a tool call that had ended");
  });
});
