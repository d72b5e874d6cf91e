import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { parse } from "yaml";
import { root } from "../architecture/source-files.ts";
import { makeClient, valueAt } from "../support/http-client.ts";
import { type HostProcess, startProcess } from "../support/processes.ts";
import { type Scrape, scrape } from "../support/prometheus.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

/** What Prometheus itself knows of each target. */
const prometheusOwn = new Set(["up"]);
/** Words of PromQL that stand where a metric's name could. */
const notMetrics = /^(by|and|or|on|rate|increase|sum|max|min|topk|histogram_quantile|max_over_time)$/;

describe("dashboard, alerts and autoscaling", () => {
  let platform: TestPlatform;
  let processes: HostProcess[];
  let scrapes: Scrape[];
  before(async () => {
    platform = await startPlatform({ workers: false });
    const env = { ...platform.env, METRICS_PORT: "0" };
    processes = await Promise.all([startProcess("api/server.ts", env), startProcess("workers/main.ts", env)]);
    const client = makeClient({ url: String(processes[0]?.ready.url), key: platform.keys.owner });
    await client.post("/ai/chat", { stream: false, messages: [{ role: "user", content: "Hello" }] });
    await client.post("/rag/ingest", { content: "A lease lasts 15 seconds." });
    scrapes = await Promise.all(processes.map(({ ready }) => scrape(`${ready.metricsUrl}/metrics`)));
  });
  after(async () => {
    await Promise.all((processes ?? []).map((each) => each.stop()));
    await platform.close();
  });

  it("ask for metrics and labels that the processes export, and for every one of our own", async () => {
    const expressions = await readExpressions();
    expect(expressions).to.have.length.above(30);
    const types = new Map(scrapes.flatMap((each) => [...each.types]));
    const labels = new Map<string, Set<string>>();
    for (const { name, labels: pairs } of scrapes.flatMap((each) => each.samples)) {
      const known = labels.get(familyOf(name, types)) ?? new Set(["job", "instance"]);
      labels.set(familyOf(name, types), known);
      for (const label of Object.keys(pairs)) known.add(label);
    }
    const asked = new Set<string>();
    for (const expression of expressions) {
      for (const { metric, by } of readSelectors(expression)) {
        if (prometheusOwn.has(metric)) continue;
        const family = familyOf(metric, types);
        expect([...types.keys()], expression).to.include(family);
        asked.add(family);
        const known = labels.get(family); // a counter that nothing has moved yet shows none
        if (known) expect([...known], `${metric} of ${expression}`).to.include.members(by);
      }
    }
    const own = [...types.keys()].filter((name) => name.startsWith("switchyard_"));
    expect([...asked]).to.include.members(own);
  });

  it("show panels that do not overlap and have ids of their own", async () => {
    const panels = valueAt(await readDashboard(), "panels") as { id: number; gridPos: Record<string, number> }[];
    expect(new Set(panels.map(({ id }) => id)).size).to.equal(panels.length);
    const cells = panels.flatMap(({ gridPos: { x = 0, y = 0, w = 0, h = 0 } }) =>
      Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`),
    );
    expect(new Set(cells).size).to.equal(cells.length);
  });
});

async function readDashboard(): Promise<unknown> {
  return JSON.parse(await readFile(join(root, "deploy/grafana/switchyard.json"), "utf8"));
}

/** Every PromQL expression of the deployment files. */
async function readExpressions(): Promise<string[]> {
  const yaml = async (path: string): Promise<unknown> => parse(await readFile(join(root, path), "utf8"));
  const rules = valueAt(await yaml("deploy/prometheus/alerts.yml"), "groups[0].rules") as { expr: string }[];
  const panels = valueAt(await readDashboard(), "panels") as { targets?: { expr: string }[] }[];
  const adapter = await yaml("deploy/kubernetes/prometheus-adapter-values.yaml");
  return [
    ...rules.map(({ expr }) => expr),
    ...panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
    String(valueAt(adapter, "rules.external[0].metricsQuery")),
  ];
}

/** The metrics that an expression names, each with the labels that it is chosen by, and those of each `by` around it. */
function readSelectors(expression: string): { metric: string; by: string[] }[] {
  const groups = [...expression.matchAll(/\bby \(([^)]*)\)\s*(\()?/g)].map(
    ({ 0: text, 1: labels = "", 2: opens, index }) => {
      const from = index + text.length;
      return {
        labels: labels.split(/, */),
        from: opens ? from : 0,
        to: opens ? closeOf(expression, from) : expression.length,
      };
    },
  );
  const hide = (text: string) => " ".repeat(text.length);
  const bare = expression.replace(/\bby \([^)]*\)/g, hide).replace(/\[[^\]]*\]/g, hide);
  return [...bare.matchAll(/\b([a-z_]+)\b(?!\()(\{[^}]*\})?/g)].flatMap(
    ({ 1: metric = "", 2: selector = "", index }) => {
      if (notMetrics.test(metric) || !/^(switchyard|nodejs|process)_|^up$/.test(metric)) return [];
      const chosen = [...selector.matchAll(/(\w+)(?:=|!)~?=?"/g)].map((match) => match[1] ?? "");
      const grouped = groups.filter(({ from, to }) => from <= index && index < to).flatMap(({ labels }) => labels);
      return [{ metric, by: [...chosen, ...grouped] }];
    },
  );
}

/** Where the parenthesis ends whose inside begins at `from`. */
function closeOf(text: string, from: number): number {
  let depth = 1;
  for (let at = from; at < text.length; at += 1) {
    if (text[at] === "(") depth += 1;
    if (text[at] === ")") depth -= 1;
    if (depth === 0) return at;
  }
  return text.length;
}

/** The metric that a sample's name belongs to: a histogram's has several. */
function familyOf(name: string, types: ReadonlyMap<string, string>): string {
  const family = name.replace(/_(bucket|sum|count)$/, "");
  return types.get(family) === "histogram" ? family : name;
}
