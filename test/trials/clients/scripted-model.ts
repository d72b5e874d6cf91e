import type { Behaviour } from "../../support/fake-provider/behaviour.ts";
import type { WireRequest } from "../../support/fake-provider/wire-format.ts";

/** The file that is to be edited. The model learns its serial only by reading it. */
export type Task = { path: string; serial: string };

export const toSettings = ({ serial }: Task, pressure: string) => `serial = ${serial}\npressure = ${pressure} bar\n`;
/** What the model says when it has read the file after its edit. */
export const toReport = ({ serial }: Task) => `The pressure of ${serial} is 1.5 bar.`;

type ToolUse = { name: string; arguments: object };

const patch =
  "*** Begin Patch\n*** Update File: settings.txt\n@@\n-pressure = 1.0 bar\n+pressure = 1.5 bar\n*** End Patch";
const shell = "sed -i 's/1.0 bar/1.5 bar/' settings.txt";
const code = (call: string) => ({ name: "exec", arguments: { input: `text(await tools.${call})` } });
const run = (cmd: string) => ({ name: "exec_command", arguments: { cmd } });

/** How the tools of each client read, edit, and read again. The first kit whose tools are all offered is used. */
const kits: ((path: string) => readonly ToolUse[])[] = [
  () => [
    code('exec_command({ cmd: "cat settings.txt" })'),
    code(`apply_patch(${JSON.stringify(patch)})`),
    code('exec_command({ cmd: "cat settings.txt" })'),
  ],
  () => [run("cat settings.txt"), { name: "apply_patch", arguments: { input: patch } }, run("cat settings.txt")],
  () => [run("cat settings.txt"), run(shell), run("cat settings.txt")],
  (path) => [
    { name: "Read", arguments: { file_path: path } },
    { name: "Edit", arguments: { file_path: path, old_string: "1.0 bar", new_string: "1.5 bar" } },
    { name: "Bash", arguments: { command: "cat settings.txt", description: "Look" } },
  ],
  (path) => [
    { name: "read", arguments: { filePath: path } },
    { name: "apply_patch", arguments: { patchText: patch } },
    { name: "bash", arguments: { command: "cat settings.txt", description: "Look" } },
  ],
  (path) => [
    { name: "read", arguments: { filePath: path } },
    { name: "edit", arguments: { filePath: path, oldString: "1.0 bar", newString: "1.5 bar" } },
    { name: "bash", arguments: { command: "cat settings.txt", description: "Look" } },
  ],
];

/** A model that reads, edits and reads again, by whatever tools it is offered on either wire, and reports what it read last. */
export function makeScriptedModel(task: Task): (body: WireRequest) => Behaviour {
  let calls = 0;
  return (body) => {
    const offered = new Set(listOf(body.tools).map((tool) => textAt(tool.function, "name") ?? textAt(tool, "name")));
    const kit = kits.map((toKit) => toKit(task.path)).find((uses) => uses.every(({ name }) => offered.has(name)));
    if (kit === undefined) return { pieces: ["Set ", "a pressure"] }; // a title is asked for
    const results = resultsOf(body);
    const use = kit[results.length];
    calls += 1;
    if (use) return { toolCalls: [{ id: `call_${calls}`, name: use.name, arguments: JSON.stringify(use.arguments) }] };
    const last = results.at(-1) ?? "";
    const serial = /serial = (\w+)/.exec(last)?.[1];
    const pressure = /pressure = ([\d.]+) bar/.exec(last)?.[1];
    return { pieces: [`The pressure of ${serial} `, `is ${pressure} bar.`] };
  };
}

type Fields = Record<string, unknown>;

/** What tools have returned since the question, of a body on OpenAI's wires or Anthropic's. */
function resultsOf(body: WireRequest): string[] {
  const turns = listOf(body.messages ?? body.input);
  const blocks = turns.flatMap(({ content }) => listOf(content));
  const isResult = ({ type, role }: Fields) =>
    role === "tool" || type === "tool_result" || type === "function_call_output";
  return [...turns, ...blocks].filter(isResult).map(({ content, output }) => toText(content ?? output));
}

const toText = (value: unknown): string =>
  typeof value === "string"
    ? value.replaceAll("\\n", "\n")
    : listOf(value)
        .map(({ text }) => toText(text))
        .join("\n");

const listOf = (value: unknown): Fields[] => (Array.isArray(value) ? value : []);

function textAt(value: unknown, field: string): string | undefined {
  const found = typeof value === "object" && value !== null ? (value as Fields)[field] : undefined;
  return typeof found === "string" ? found : undefined;
}
