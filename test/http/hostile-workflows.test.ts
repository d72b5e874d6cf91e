import { expect } from "chai";
import { circularSchemas, manyLoops } from "../support/hostile-workflows.ts";
import { chatModel, condition, openWorkflowHarness, type WorkflowHarness } from "../support/workflow-harness.ts";

describe("workflows written to exhaust the service", function () {
  this.timeout(60_000);
  let harness: WorkflowHarness;
  before(async () => {
    harness = await openWorkflowHarness();
    harness.model.play(() => ({ text: "ok" }));
  });
  after(() => harness?.close());

  it("are refused when they are saved, if that can be detected", async () => {
    const { member } = harness;
    const refuse = async (body: object, param: string, message: RegExp) => {
      const answer = await member.post("/workflows", { name: "Hostile", ...body });
      expect([answer.status, answer.at("error.param")], answer.text).to.deep.equal([400, param]);
      expect(answer.text).to.match(message);
    };
    await refuse({ steps: manyLoops(101).steps }, "steps[0].prompt", /more than 100 expressions/);
    const prompt = `{{ ${"1 + ".repeat(3_000)}1 }}`;
    await refuse({ steps: [{ type: "ai_completion", model: chatModel, prompt }] }, "steps[0].prompt", /10000/);
    for (const inputSchema of Object.values(circularSchemas)) {
      await refuse({ steps: [condition("input.n + 1 == 2", [])], inputSchema }, "inputSchema", /refers to itself/);
    }
    let nested: object = { type: "string" };
    for (let depth = 0; depth < 70; depth += 1) nested = { not: nested };
    await refuse({ steps: [condition("input.n + 1 == 2", [])], inputSchema: nested }, "inputSchema", /deep/);
  });

  it("do not affect large, honest ones", async () => {
    const lines = Array.from({ length: 400 }, (_, n) => ({ sku: `part-${n}`, count: n, note: "x".repeat(300) }));
    const expressions = Array.from(
      { length: 100 },
      (_, n) => `${n}: {{ input.lines[${n}].sku }} x {{ input.lines[${n}].count }}`,
    );
    const steps = [
      condition("input.lines.filter(l, l.note.contains('x') && l.sku.matches('^part-[0-9]+$')).size() == 400", [
        { type: "ai_completion", model: chatModel, prompt: expressions.slice(0, 50).join("\n") },
        { type: "ai_completion", model: chatModel, prompt: "{{ input.lines.map(l, l.sku + '!') }} {{ input.lines }}" },
      ]),
    ];
    const workflowId = await harness.create(steps);
    const runIds = await Promise.all(Array.from({ length: 10 }, () => harness.start(workflowId, { lines })));
    for (const runId of runIds) {
      const run = await harness.reach(workflowId, runId, "completed", "failed");
      expect(run.at("status"), run.text.slice(-500)).to.equal("completed");
      expect(run.at("steps")).to.have.lengthOf(3);
    }
  });
});
