import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { publishFixtures } from "../support/mcp-fixtures.ts";
import { openWorkflowHarness, type WorkflowHarness } from "../support/workflow-harness.ts";

const suite = fileURLToPath(
  new URL("../../node_modules/@modelcontextprotocol/conformance/dist/index.js", import.meta.url),
);
const exceptions = fileURLToPath(new URL("mcp-conformance.yml", import.meta.url));
const taskScenarios = [
  "tasks-lifecycle",
  "tasks-capability-negotiation",
  "tasks-wire-fields",
  "tasks-request-state-removal",
  "tasks-mrtr-input",
  "tasks-request-headers",
  "tasks-dispatch-and-envelope",
  "tasks-required-task-error",
  "tasks-mrtr-composition",
];

/** Passes requests on with a key, which the suite cannot send. */
async function startKeyProxy(harness: WorkflowHarness) {
  const { port } = new URL(harness.test.url);
  const proxy = createServer((incoming, response) => {
    const { url: path, method } = incoming;
    const headers = { ...incoming.headers, authorization: `Bearer ${harness.test.keys.owner}` };
    const sent = request({ host: "127.0.0.1", port, path, method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    sent.on("error", () => response.destroy());
    response.on("close", () => sent.destroy());
    incoming.pipe(sent);
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const address = proxy.address();
  if (address === null || typeof address === "string") throw new Error("the proxy has no port");
  return {
    url: `http://localhost:${address.port}/mcp`,
    close: async () => {
      proxy.close();
      proxy.closeAllConnections();
      await once(proxy, "close");
    },
  };
}

describe("the conformance suite of the Model Context Protocol", function () {
  this.timeout(120_000);
  let harness: WorkflowHarness;
  let proxy: Awaited<ReturnType<typeof startKeyProxy>>;
  let folder: string;
  /** Starts a server whose calls become tasks after this time, for the tests beside it. */
  const serve = (env: Record<string, string>) => {
    before(async () => {
      folder = await mkdtemp(join(tmpdir(), "mcp-conformance-"));
      harness = await openWorkflowHarness({ env: { RATE_LIMIT_RPM: "100000", ...env } });
      await publishFixtures(harness);
      proxy = await startKeyProxy(harness);
    });
    after(async () => {
      await proxy?.close();
      await harness?.close();
      await rm(folder, { recursive: true, force: true });
    });
  };

  /** Runs the suite as its users do; it fails for each check that fails, unless it is one of the exceptions. */
  const run = async (...options: string[]) => {
    const given = ["server", "--url", proxy.url, "-o", folder, "--expected-failures", exceptions, ...options];
    const { code, output } = await new Promise<{ code: unknown; output: string }>((resolve) => {
      execFile(process.execPath, [suite, ...given], { maxBuffer: 64 << 20 }, (error, stdout, stderr) =>
        resolve({ code: error?.code ?? 0, output: stdout + stderr }),
      );
    });
    expect(code, output.slice(-4_000)).to.equal(0);
    return output;
  };

  describe("in each revision", () => {
    serve({});
    for (const [revision, least] of [
      ["2025-03-26", 0],
      ["2025-06-18", 10],
      ["2025-11-25", 15],
      ["2026-07-28", 50],
    ] as const) {
      it(`finds no fault in the revision ${revision}`, async () => {
        const output = await run("--suite", "all", "--spec-version", revision);
        const [, passed] = /Total: (\d+) passed/.exec(output) ?? [];
        expect(Number(passed), "checks that passed").to.be.at.least(least);
      });
    }
  });

  describe("with tasks", () => {
    serve({ TOOL_WAIT_MS: "700" }); // the suite's slow tools take a second or more
    for (const scenario of taskScenarios) {
      it(`finds no fault in ${scenario}`, async () => {
        await run("--scenario", scenario, "--spec-version", "2026-07-28", "--force");
      });
    }
  });
});
