/** One stage of a Dockerfile: its steps in order, with arguments put in, and what its processes get. */
export type Stage = {
  name: string | undefined;
  steps: readonly Step[];
  env: Record<string, string>;
  user: string | undefined;
  command: readonly string[];
  healthCheck: readonly string[];
};
export type Step =
  | { kind: "workdir"; path: string }
  | { kind: "copy"; from: string | undefined; source: readonly string[]; target: string }
  | { kind: "run"; command: string };

/**
 * Reads the instructions that our Dockerfile uses.
 * @throws Error that names an instruction beyond them.
 */
export function readDockerfile(text: string): Stage[] {
  const args: Record<string, string> = {};
  const stages: (Stage & { steps: Step[] })[] = [];
  for (const { word, rest } of instructions(text)) {
    const value = rest.replaceAll(/\$\{(\w+)\}/g, (whole, name: string) => args[name] ?? whole);
    if (word === "ARG") {
      const [name = "", given = ""] = value.split("=");
      args[name] = given;
      continue;
    }
    if (word === "FROM") {
      const name = /\bAS (\S+)$/i.exec(value)?.[1];
      stages.push({ name, steps: [], env: {}, user: undefined, command: [], healthCheck: [] });
      continue;
    }
    const stage = stages.at(-1);
    if (stage === undefined) throw new Error(`${word} stands before FROM`);
    if (word === "WORKDIR") stage.steps.push({ kind: "workdir", path: value });
    else if (word === "RUN") stage.steps.push({ kind: "run", command: value });
    else if (word === "COPY") stage.steps.push(copyOf(value));
    else if (word === "ENV") Object.assign(stage.env, Object.fromEntries(pairs(value)));
    else if (word === "USER") stage.user = value;
    else if (word === "CMD") stage.command = JSON.parse(value);
    else if (word === "HEALTHCHECK") stage.healthCheck = JSON.parse(value.replace(/^.*?CMD /, ""));
    else if (word !== "EXPOSE") throw new Error(`${word} is not known to this check`);
  }
  return stages;
}

function instructions(text: string) {
  const lines = text.replaceAll(/\\\n\s*/g, "").split("\n");
  return lines
    .filter((line) => line.trim() !== "" && !line.startsWith("#"))
    .map((line) => ({ word: line.slice(0, line.indexOf(" ")), rest: line.slice(line.indexOf(" ") + 1).trim() }));
}

function copyOf(value: string): Step {
  const parts = value.split(/\s+/);
  const from = parts[0]?.startsWith("--from=") ? parts.shift()?.slice("--from=".length) : undefined;
  return { kind: "copy", from, target: parts.pop() ?? "", source: parts };
}

function pairs(value: string) {
  return value
    .split(/\s+/)
    .map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)] as const);
}
