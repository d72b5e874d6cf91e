import { setTimeout as delay } from "node:timers/promises";
import { chatModel, condition, type WorkflowHarness } from "./workflow-harness.ts";

/** A schema with the keywords of JSON Schema 2020-12 that the conformance suite looks for, but for `if`, which is refused here. */
const schema2020 = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: {
    address: {
      $anchor: "addressDef",
      type: "object",
      properties: { street: { type: "string" }, city: { type: "string" } },
    },
  },
  properties: {
    name: { type: "string" },
    address: { $ref: "#/$defs/address" },
    contactMethod: { type: "string", enum: ["phone", "email"] },
    phone: { type: "string" },
    email: { type: "string" },
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  additionalProperties: false,
};

const say = (prompt: string) => [{ type: "ai_completion", id: "say", model: chatModel, prompt }];
const properties = (fields: object, ...required: string[]) => ({ type: "object", properties: fields, required });
const text = { type: "string" };

/** The tools that the conformance suite expects of a server, as workflows that a tenant publishes. */
export async function publishFixtures(harness: WorkflowHarness): Promise<void> {
  harness.model.play(({ input }) => ({ text: input }));
  const once = { attempts: 1, backoffMs: 0 };
  const visit = (path: string) => [
    { type: "webhook", id: "visit", method: "POST", url: `${harness.site.origin}${path}`, retry: once },
  ];
  harness.site.on("/sleep", async ({ path }, response) => {
    await delay(1_000 * Number(new URL(path, harness.site.origin).searchParams.get("seconds")), undefined, {
      ref: false,
    });
    response.writeHead(path.includes("fail") ? 400 : 200).end();
  });
  const ask = [{ type: "human_approval", id: "ask", assigneeRole: "admin", message: "Delete it?" }];
  const region = { region: { type: "string", "x-mcp-header": "Region" } };
  const tools: [name: string, steps: object[], inputSchema?: object][] = [
    ["a_simple_tool", say("Hello.")], // the suite calls the first tool of the list without arguments
    ["test_simple_text", say("This is a simple text response for testing.")],
    ["test_error_handling", visit("/sleep?fail&seconds=0")],
    ["test_streaming_elicitation", say("Hello.")],
    ["test_logging_tool", say("Hello.")],
    ["test_tool_with_progress", [condition("true", [condition("true", say("Hello."))])]], // three steps, but one call
    ["test_input_required_result_request_state", ask],
    ["test_input_required_result_tampered_state", ask],
    ["test_input_required_result_elicitation", ask],
    ["test_x_mcp_header", say("{{ input.region }}"), properties(region)],
    ["json_schema_2020_12_tool", say("Hello."), schema2020],
    ["greet", say("Hello, {{ input.name }}!"), properties({ name: text }, "name")],
    [
      "slow_compute",
      visit("/sleep?seconds={{ input.seconds }}"),
      properties({ seconds: { type: "number" }, label: text }),
    ],
    ["failing_job", visit("/sleep?fail&seconds=1")],
    ["confirm_delete", ask, properties({ filename: text }, "filename")],
  ];
  for (const [name, steps, inputSchema] of tools) {
    await harness.create(steps, {
      ...(inputSchema && { inputSchema }),
      publish: { name, description: `The tool ${name}` },
    });
  }
}
