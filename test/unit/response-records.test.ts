import { expect } from "chai";
import { ZodError } from "zod";
import { beginResponse } from "../../src/surfaces/responses/response.ts";
import { readItems, readResponse, toTexts } from "../../src/surfaces/responses/stored/records.ts";

const message = {
  type: "message" as const,
  id: "msg_1",
  status: "completed" as const,
  role: "assistant" as const,
  content: [{ type: "output_text" as const, text: "Yes.", annotations: [], logprobs: [] as never[] }],
};

describe("the stored texts of a response", () => {
  const begun = beginResponse({ model: "meta-llm", input: "Well?" });
  const { response, output } = toTexts(begun, [message]);

  it("are read as they were written", () => {
    expect(readResponse({ response, output })).to.deep.equal({ ...begun, output: [message] });
  });

  it("are read as earlier releases wrote them, without a conversation", () => {
    const { conversation: _absent, ...earlier } = JSON.parse(response);
    expect(readResponse({ response: JSON.stringify(earlier), output }).conversation).to.equal(null);
  });

  it("keep all fields of an answer that an input refers to, beside items of its own", () => {
    const items = [message, { role: "user", content: "Sure?" }, { type: "reasoning", encrypted_content: "sealed" }];
    expect(readItems(JSON.stringify(items))).to.deep.equal(items);
  });

  it("are refused if they are no response, or have an item that no response keeps", () => {
    expect(() => readResponse({ response: '{"status":"completed"}', output })).to.throw(ZodError);
    expect(() => readItems('[{"type":"item_reference","id":"msg_2"}]')).to.throw(TypeError);
  });
});
