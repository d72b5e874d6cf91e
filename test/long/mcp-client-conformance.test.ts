import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";

const suite = fileURLToPath(
  new URL("../../node_modules/@modelcontextprotocol/conformance/dist/index.js", import.meta.url),
);
const client = fileURLToPath(new URL("../support/mcp-conformance-client.ts", import.meta.url));

/**
 * The scenarios that apply to agents. The others ask for what an agent's tools have not: a person or a model of the client's
 * (elicitation-*, sep-2322-*), a stream that is resumed (sse-retry), a login (auth/*, since the agent holds the credential),
 * skills (sep-2640-*).
 */
const scenarios: [scenario: string, revision: string][] = [
  ["initialize", "2025-06-18"],
  ["initialize", "2025-11-25"],
  ["tools_call", "2025-06-18"],
  ["tools_call", "2025-11-25"],
  ["json-schema-2020-12-preservation", "2025-11-25"],
  ["tools_call", "2026-07-28"],
  ["request-metadata", "2026-07-28"],
  ["http-standard-headers", "2026-07-28"],
  ["http-custom-headers", "2026-07-28"],
  ["http-invalid-tool-headers", "2026-07-28"],
  ["json-schema-ref-no-deref", "2026-07-28"],
  ["json-schema-2020-12-preservation", "2026-07-28"],
];

describe("the conformance suite of the Model Context Protocol and an agent as its client", function () {
  this.timeout(120_000);
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "mcp-client-conformance-"));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  for (const [scenario, revision] of scenarios) {
    it(`finds no fault in ${scenario} of ${revision}`, async () => {
      const command = `${process.execPath} ${client}`;
      const options = ["--scenario", scenario, "--spec-version", revision, "--timeout", "60000", "-o", folder];
      const { code, output } = await new Promise<{ code: unknown; output: string }>((resolve) => {
        execFile(process.execPath, [suite, "client", "--command", command, ...options], (error, stdout, stderr) =>
          resolve({ code: error?.code ?? 0, output: stdout + stderr }),
        );
      });
      expect(code, output.slice(-4_000)).to.equal(0);
      expect(output).to.match(/Passed: [1-9]/);
    });
  }
});
