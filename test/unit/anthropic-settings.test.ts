import { expect } from "chai";
import { toMessagesParams } from "../../src/gateway/providers/anthropic/request.ts";
import type { CompletionRequest } from "../../src/gateway/providers/provider.ts";

const messages: CompletionRequest["messages"] = [{ role: "user", content: "a" }];
const tools = [{ name: "find" }];
const adaptive = { type: "adaptive" };

/** What a request adds to the parameters that every one has. */
function added(request: Partial<CompletionRequest>): Record<string, unknown> {
  const {
    model: _m,
    max_tokens: _t,
    messages: _c,
    tools: _d,
    ...rest
  } = toMessagesParams({
    model: "claude-opus-5",
    messages,
    ...request,
  });
  return rest;
}

describe("settings in Anthropic's terms", () => {
  const efforts: [about: string, request: Partial<CompletionRequest>, sent: object][] = [
    ["of none", {}, {}],
    ["a level", { effort: "xhigh" }, { thinking: adaptive, output_config: { effort: "xhigh" } }],
    ["less than its lowest", { effort: "minimal" }, { thinking: adaptive, output_config: { effort: "low" } }],
    ["off", { effort: "none" }, { thinking: { type: "disabled" } }],
    ["off on Sonnet 5.5", { model: "claude-sonnet-5-5", effort: "none" }, { thinking: { type: "between_tools" } }],
    [
      "a level beside a demanded call",
      { effort: "low", tools, toolChoice: "required" },
      { output_config: { effort: "low" }, tool_choice: { type: "any" } },
    ],
    [
      "a budget of older models",
      { model: "claude-haiku-4-5-20251001", effort: "medium", maxTokens: 8_000 },
      { thinking: { type: "enabled", budget_tokens: 4_000 } },
    ],
    ["a budget below the least", { model: "claude-opus-4-5-20251101", effort: "low", maxTokens: 5_000 }, {}],
  ];
  for (const [about, request, sent] of efforts)
    it(`map an effort: ${about}`, () => {
      expect(added(request)).to.deep.equal(sent);
    });

  it("map a format with a schema, the user, the tier, and calls one at a time", () => {
    const schema = { type: "object", properties: { a: { type: "string" } }, additionalProperties: false };
    const responseFormat = { type: "json_schema" as const, json_schema: { name: "n", strict: true, schema } };
    expect(added({ responseFormat, effort: "low" })).to.deep.equal({
      thinking: adaptive,
      output_config: { effort: "low", format: { type: "json_schema", schema } },
    });
    expect(added({ responseFormat })).to.deep.equal({ output_config: { format: { type: "json_schema", schema } } });
    const users = [{ user: "u" }, { safetyIdentifier: "s" }, { user: "u", safetyIdentifier: "s" }];
    expect(users.map((user) => added(user).metadata)).to.deep.equal([
      { user_id: "u" },
      { user_id: "s" },
      { user_id: "s" },
    ]);
    const tiers = (["auto", "default"] as const).map((serviceTier) => added({ serviceTier }).service_tier);
    expect(tiers).to.deep.equal(["auto", "standard_only"]);
    const choiceOf = (request: Partial<CompletionRequest>) =>
      added({ parallelToolCalls: false, ...request }).tool_choice;
    const single = { disable_parallel_tool_use: true };
    expect(choiceOf({})).to.equal(undefined);
    expect(choiceOf({ tools })).to.deep.equal({ type: "auto", ...single });
    expect(choiceOf({ tools, toolChoice: "none" })).to.deep.equal({ type: "none" });
    expect(choiceOf({ tools, toolChoice: { name: "find" } })).to.deep.equal({ type: "tool", name: "find", ...single });
    expect(choiceOf({ tools, parallelToolCalls: true })).to.equal(undefined);
  });
});
