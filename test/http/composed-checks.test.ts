import { expect } from "chai";
import { condition, openWorkflowHarness, set, type WorkflowHarness } from "../support/workflow-harness.ts";

describe("a workflow that is checked", function () {
  this.timeout(60_000);
  let harness: WorkflowHarness;
  before(async () => {
    harness = await openWorkflowHarness();
  });
  after(() => harness.close());

  const validate = async (steps: object[], more: object = {}) => {
    const checked = await harness.member.post("/workflows/validate", { name: "Checked", steps, ...more });
    expect(checked.status, checked.text).to.equal(200);
    return (checked.at("problems") as { path: string; code: string }[]).map(({ path, code }) => `${path} ${code}`);
  };

  it("has all its problems told, each with its path", async () => {
    const loop = (step: object) => ({ type: "for_each", items: "input", do: [step] });
    expect(
      await validate([
        loop(set("a", { n: "{{ item + other }}" })),
        { type: "agent", name: "Nobody", input: "Hi {{ item }}" },
        { type: "parallel", branches: { x: [set("b", { n: 1 })], y: [set("c", { n: "{{ steps.b.output.n }}" })] } },
        { ...set("d", { n: "{{ steps.a.output.n }}" }), onError: { goto: "b" } },
        { type: "ai_completion", model: "no-such-model", prompt: "Hi" },
      ]),
    ).to.deep.equal([
      "steps[3].onError.goto invalid_request",
      "steps[1].name invalid_request",
      "steps[4].model unknown_model",
      "steps[0].do[0].values.n invalid_request",
      "steps[1].input invalid_request",
      "steps[2].branches.y[0].values.n invalid_request",
      "steps[3].values.n invalid_request",
    ]);
    expect(await validate([{ type: "wait" }])).to.deep.equal(["steps[0] invalid_request"]);
    expect(await validate([loop({ type: "wait", ms: 0 })])).to.deep.equal(["steps[0].do[0].ms invalid_request"]);
    expect(await validate([set("fine", { n: 1 })])).to.deep.equal([]);
  });

  it("has its expressions held against the types of its input, as far as these are known", async () => {
    const inputSchema = {
      type: "object",
      additionalProperties: false,
      properties: {
        ...{
          name: { type: "string" },
          count: { type: "integer" },
          price: { type: "number" },
          flag: { type: "boolean" },
        },
        ...{ tags: { type: "array", items: { type: "string" } }, maybe: { type: ["string", "null"] }, any: {} },
        order: { type: "object", properties: { id: { type: "string" } }, additionalProperties: false },
        open: { type: "object", properties: { id: { type: "integer" } } },
      },
    };
    const problems = async (
      expression: string,
      step: (text: string) => object = (text) => set("x", { v: `{{ ${text} }}` }),
    ) => validate([step(expression)], { inputSchema });
    for (const right of [
      ...[
        "input.name + '!'",
        "input.count + 1.5",
        "input.price / 2",
        "input.tags.map(t, t + '!')",
        "input.tags.join(', ')",
      ],
      ...["size(input)", "'name' in input", "input == null", "has(input.other) ? 1 : 2", "input.?other.orValue(1)"],
      ...[
        "input.maybe == null",
        "input.any + 1",
        "input.order.id",
        "input.open.other",
        "input.name.size() + input.count",
      ],
      ...[
        "[{'other': 1}].map(input, input.other)",
        "input['name'] + ''",
        "string(input.count) + input.name",
        "input.order",
      ],
    ])
      expect(await problems(right), right).to.deep.equal([]);
    for (const wrong of [
      ...["input.name + 1", "input.other", "input.order.other", "input['other']", "input.name.first", "input.flag + 1"],
      ...["input.tags.map(t, t + 1)", "input.count.size()", "steps.y.output + input.open.id + input.other"],
    ])
      expect(await problems(wrong), wrong).to.deep.equal(["steps[0].values.v invalid_request"]);
    expect(await problems("input.name", (text) => condition(text, []))).to.deep.equal([
      "steps[0].expression invalid_request",
    ]);
    expect(await problems("input.flag", (text) => condition(text, []))).to.deep.equal([]);
    const loop = (items: string) => ({ type: "for_each", items, do: [set("x", { v: "{{ item }}" })] });
    expect(await problems("input.name", loop)).to.deep.equal(["steps[0].items invalid_request"]);
    expect(await problems("input.tags", loop)).to.deep.equal([]);
  });

  it("has the item of a list held against what its list holds", async () => {
    const line = { type: "object", properties: { name: { type: "string" }, count: { type: "integer" } } };
    const inputSchema = {
      type: "object",
      properties: {
        lines: { type: "array", items: { ...line, additionalProperties: false } },
        names: { type: "array", items: { type: "string" } },
        rows: { type: "array", items: { type: "array", items: { type: "boolean" } } },
        any: { type: "array" },
      },
    };
    const loop = (items: string, text: string, as = "item") => ({
      ...{ type: "for_each", items, as, do: [set("x", { v: `{{ ${text} }}` })] },
    });
    const within = (text: string) => ({
      ...{ type: "for_each", items: "input.rows", as: "row" },
      do: [loop("row", text, "cell")],
    });
    for (const right of [
      loop("input.lines", "item.name + string(item.count)"),
      loop("input.names", "item + '!'"),
      loop("input.names", "one + '!'", "one"),
      loop("input.any", "item + 1"),
      loop("input.lines", "[1].map(item, item + 1)"),
      loop("input.lines.filter(l, l.count > 1)", "item.other"),
      within("cell && row_index + cell_index > 1"),
    ])
      expect(await validate([right], { inputSchema }), JSON.stringify(right)).to.deep.equal([]);
    for (const wrong of [
      loop("input.lines", "item.other"),
      loop("input.lines", "item.name + item.count"),
      loop("input.names", "item + 1"),
      loop("input.any", "item_index + ''"),
      loop("input.names", "one + one_index", "one"),
    ])
      expect(await validate([wrong], { inputSchema }), JSON.stringify(wrong)).to.deep.equal([
        "steps[0].do[0].values.v invalid_request",
      ]);
    expect(await validate([within("cell + 1")], { inputSchema })).to.deep.equal([
      "steps[0].do[0].do[0].values.v invalid_request",
    ]);
  });

  it("has what it gives to another workflow held against what that takes, as far as it is known", async () => {
    const takes = {
      type: "object",
      additionalProperties: false,
      required: ["name"],
      properties: {
        name: { type: "string", minLength: 3 },
        count: { type: "integer" },
        tags: { type: "array", maxItems: 2, items: { type: "string" } },
        either: { anyOf: [{ type: "string" }, { type: "object", required: ["id"] }] },
      },
    };
    const called = await harness.create([set("n", { n: 1 })], { inputSchema: takes });
    const inputSchema = {
      type: "object",
      properties: {
        name: { type: "string" },
        count: { type: "integer" },
        price: { type: "number" },
        whole: { type: "object" },
        tags: { type: "array", items: { type: "string" } },
      },
    };
    const problems = (input: unknown) =>
      validate([{ type: "workflow", workflowId: called, ...(input === undefined ? {} : { input }) }], {
        inputSchema,
      });
    for (const right of [
      ...[
        { name: "Ada" },
        { name: "{{ input.name }}" },
        { name: "{{ input.any }}" },
        { name: "It is {{ input.count }}" },
      ],
      ...[{ name: "Ada", count: "{{ input.price }}" }, { name: "Ada", tags: "{{ input.tags }}" }, "{{ input.whole }}"],
      ...[
        "{{ input }}",
        { name: "Ada", tags: ["a", "{{ input.count }}"].slice(0, 1) },
        { name: "Ada", either: { id: "{{ input.any }}" } },
      ],
      ...[
        { name: "Ada", either: "{{ input.any }}" },
        { name: "Ada", count: "{{ input.count + 1 }}" },
      ],
    ])
      expect(await problems(right), JSON.stringify(right)).to.deep.equal([]);
    for (const [wrong, path] of [
      [undefined, "input"],
      ["{{ input.name }}", "input"],
      ["Hello", "input"],
      [{}, "input.name"],
      [{ name: "Al" }, "input.name"],
      [{ name: "{{ input.count }}" }, "input.name"],
      [{ name: "{{ input.any }}", other: 1 }, "input"],
      [{ name: "Ada", count: "{{ input.name }}" }, "input.count"],
      [{ name: "Ada", count: "is {{ input.count }}" }, "input.count"],
      [{ name: "Ada", tags: ["{{ input.any }}", "b", "c"] }, "input.tags"],
      [{ name: "Ada", tags: ["{{ input.count }}"] }, "input.tags[0]"],
      [{ name: { text: "{{ input.any }}" } }, "input.name"],
    ] as const)
      expect(await problems(wrong), JSON.stringify(wrong)).to.deep.equal([`steps[0].${path} invalid_request`]);
    const steps = [{ type: "workflow", workflowId: called, input: { name: 7 } }];
    const made = await harness.member.post("/workflows", { name: "Caller", steps });
    expect([made.status, made.at("error.param")], made.text).to.deep.equal([400, "steps[0].input.name"]);
    const list = {
      type: "for_each",
      items: "input.tags",
      do: [{ type: "workflow", workflowId: called, input: { name: "{{ item }}", count: "{{ item }}" } }],
    };
    expect(await validate([list], { inputSchema })).to.deep.equal(["steps[0].do[0].input.count invalid_request"]);
  });

  it("must not run itself, nor others deeper than five", async () => {
    const callOf = (workflowId: string) => [{ type: "workflow", workflowId }];
    const first = await harness.create([set("n", { n: 1 })]);
    let last = first;
    for (let depth = 2; depth <= 5; depth += 1) last = await harness.create(callOf(last));
    const tooDeep = await harness.member.post("/workflows", { name: "Six", steps: callOf(last) });
    expect([tooDeep.status, tooDeep.at("error.param")]).to.deep.equal([400, "steps[0].workflowId"]);
    const round = await harness.member.request("PUT", `/workflows/${first}`, {
      body: { name: "Round", steps: callOf(last) },
    });
    expect([round.status, round.at("error.param")], round.text).to.deep.equal([400, "steps[0].workflowId"]);
    const own = await harness.member.request("PUT", `/workflows/${first}`, {
      body: { name: "Round", steps: callOf(first) },
    });
    expect(own.status).to.equal(400);
  });
});
