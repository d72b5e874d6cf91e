import { chatModel, openWorkflowHarness } from "./workflow-harness.ts";

/**
 * The client that the conformance suite runs: an agent with the tools of the server at the URL of its last argument, whose model
 * calls those that the scenario names, or else each of them once.
 */
const url = process.argv.at(-1) ?? "";
const { toolCalls = [] } = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}") as {
  toolCalls?: { name: string; arguments: object }[];
};
const inTool = (name: string) => `remote_${name}`.replace(/[^a-zA-Z0-9_-]/g, "_");

const harness = await openWorkflowHarness({ env: { FETCH_ALLOW_ORIGINS: new URL(url).origin } });
try {
  harness.model.play(({ turn, tools }) => {
    if (turn > 1) return { text: "Done." };
    const named = toolCalls.map((call) => ({ name: inTool(call.name), arguments: call.arguments }));
    const schema = tools[0]?.function.parameters;
    const given = { a: 5, b: 3, schema }; // what one or the other tool asks for
    const each = tools.map(({ function: { name } }) => ({ name, arguments: given }));
    return { calls: named.length > 0 ? named : each };
  });
  const tools = [{ type: "mcp", name: "remote", config: { url } }];
  const agent = { name: "Conformance", model: chatModel, systemPrompt: "You call tools.", tools };
  const agentId = (await harness.member.post("/agents", agent)).string("agentId");
  const ran = await harness.member.post(`/agents/${agentId}/run`, { input: "Go." }, { headers: { prefer: "wait=60" } });
  const run = await harness.member.get(`/agents/${agentId}/runs/${ran.string("runId")}`);
  process.stdout.write(`${JSON.stringify(run.at("steps"))}\n`);
} finally {
  await harness.close();
}
process.exit(0);
