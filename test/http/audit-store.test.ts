import { expect } from "chai";
import { newId } from "../../src/lib/ids.ts";
import type { AuditEntry } from "../../src/store/audit-store.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

describe("the entries of an audit log", () => {
  let test: TestPlatform;
  before(async () => {
    test = await startPlatform();
  });
  after(() => test.close());

  it("are added once each, read in order, by their tenant only", async () => {
    const { audit } = test.platform.store;
    const [tenantId, runId] = [newId("tenant"), newId("run")];
    const entry = (seq: number): AuditEntry => ({
      _id: `${runId}:${seq}`,
      tenantId,
      runId,
      seq,
      at: new Date().toISOString(),
      content: { kind: "end", status: "stopped", reason: `${seq}`, output: "" },
      previous: "p",
      hash: "h",
    });
    const [first, second] = [entry(0), entry(1)];
    await audit.append(second);
    await audit.append(first);
    const list = async (of: string) => (await audit.list(of, runId)).map(({ bytes: _bytes, ...kept }) => kept);
    const otherRun = newId("run");
    await audit.append({ ...entry(0), _id: `${otherRun}:0`, runId: otherRun });
    expect(await list(tenantId)).to.deep.equal([first, second]);
    const again = await audit.append({ ...first, hash: "other" }).catch((error: { code: string }) => error.code);
    expect(again, "another worker's entry at a place that is taken").to.equal("unavailable");
    expect(await list(tenantId)).to.deep.equal([first, second]);
    expect(await list(newId("tenant"))).to.deep.equal([]);
  });
});
