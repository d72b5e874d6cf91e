import { expect } from "chai";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type HostProcess, startProcess } from "../support/processes.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const later = { prefer: "respond-async" };

describe("a document that is expensive to read", function () {
  this.timeout(120_000);
  let test: TestPlatform;
  let client: ApiClient;
  let worker: HostProcess;

  before(async () => {
    test = await startPlatform({ workers: false });
    client = makeClient({ url: test.url, key: test.keys.owner });
    worker = await startProcess("workers/main.ts", { ...test.env, PARSE_TIMEOUT_MS: "300000" }); // nothing is cut short
  });
  after(async () => {
    await worker?.kill();
    await test.close();
  });

  it("is read by its worker, which survives: forty-five megabytes of one letter", async () => {
    const form = new FormData();
    form.append("file", new Blob([Buffer.alloc(45_000_000, "a")], { type: "text/plain" }), "one.txt");
    const accepted = await client.request("POST", "/rag/ingest", { raw: form, headers: later });
    expect(accepted.status).to.equal(202);
    const path = `/jobs/${accepted.string("jobId")}`;
    const isRead = async () => {
      const { status, progress, attempts } = (await client.get(path)).body as Record<string, unknown>;
      expect(attempts).to.be.oneOf([0, 1]);
      const { stage } = progress as { stage: string };
      return status === "failed" || status === "completed" || stage === "embedding";
    };
    await pollUntil(isRead, { timeoutMs: 90_000, what: "the document, read or refused" });
    expect(worker.child.exitCode, "the worker's exit code").to.equal(null);
    expect(worker.child.signalCode, "the signal that ended the worker").to.equal(null);
    await client.delete(`/rag/documents/${accepted.string("documentId")}`);
  });
});
