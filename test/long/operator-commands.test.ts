import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { bareEnvironment } from "../support/compile-cache.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

/** A script of the operator, as a process of its own, with nothing in its environment but `env`. */
function command(script: "keys" | "audit", args: readonly string[], env: Record<string, string>) {
  const path = fileURLToPath(new URL(`../../scripts/${script}.ts`, import.meta.url));
  return new Promise<{ code: number | string; lines: string[]; stderr: string }>((resolve) => {
    const options = { env: { ...bareEnvironment, ...env }, timeout: 30_000 };
    execFile(process.execPath, [path, ...args], options, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, lines: stdout.trim().split("\n"), stderr }),
    );
  });
}

describe("the operator's commands", function () {
  this.timeout(90_000);
  let test: TestPlatform;

  before(async () => {
    test = await startPlatform();
  });
  after(() => test.close());

  it("never create a store, and report which one is missing", async () => {
    const dataDir = join(test.platform.config.dataDir, "none");
    const made = await command("keys", ["create", "--tenant", "acme", "--subject", "ana"], { DATA_DIR: dataDir });
    const read = await command("audit", ["verify", "run_01J00000000000000000000000"], { DATA_DIR: dataDir });
    for (const { code, stderr } of [made, read]) {
      expect(stderr).to.match(/^There is no store in .*none\. Set DATA_DIR or MONGODB_URL/);
      expect(code).to.equal(2);
    }
    expect(existsSync(dataDir)).to.equal(false);
  });

  it("require a tenant or a key, and report an API that does not answer", async () => {
    const bare = await command("keys", ["list"], {});
    expect([bare.code, bare.stderr]).to.deep.equal([
      2,
      "Name a tenant of the store with --tenant, or give an owner's key of the API with --key.\n",
    ]);
    const lost = await command("keys", ["list", "--url", "http://127.0.0.1:1"], { KEY: test.keys.owner });
    expect([lost.code, lost.stderr]).to.deep.equal([
      1,
      "API: http://127.0.0.1:1\nThere is no API at http://127.0.0.1:1.\n",
    ]);
  });

  it("make, list and revoke keys through the API at a URL, with a key", async () => {
    const env = { URL: test.url, KEY: test.keys.owner };
    const made = await command("keys", ["create", "--subject", "ana@acme.io", "--role", "admin"], env);
    expect([made.code, made.stderr]).to.deep.equal([0, `API: ${test.url}\n`]);
    const [key = "", , about = ""] = made.lines;
    const asks = (bearer: string) => fetch(`${test.url}/jobs`, { headers: { authorization: `Bearer ${bearer}` } });
    expect((await asks(key)).status).to.equal(200);
    const [keyId = ""] = about.split(":");
    const listed = await command("keys", ["list"], env);
    expect(listed.lines.filter((line) => line.startsWith(`${keyId}  admin   ana@acme.io`))).to.have.lengthOf(1);
    expect((await command("keys", ["revoke", keyId], env)).lines).to.deep.equal([`${keyId} is revoked`]);
    expect((await asks(key)).status).to.equal(401);
    const member = await command("keys", ["list"], { URL: test.url, KEY: test.keys.member });
    expect(member.stderr).to.include("answers 403: This needs a key with the role owner; yours has the role member.");
  });

  it("work on the store where a tenant is named, and say which store that is", async () => {
    const listed = await command("keys", ["list", "--tenant", "first"], { ...test.env, KEY: test.keys.stranger });
    expect(listed.stderr).to.match(/^store: /);
    expect(listed.lines.filter((line) => line.includes("  owner   owner@test"))).to.have.lengthOf(1);
  });

  it("read an audit log through the API at a URL, with a key", async () => {
    const unknown = "run_01J00000000000000000000000";
    const found = await command("audit", ["verify", unknown], { URL: test.url, KEY: test.keys.owner });
    expect([found.code, found.stderr]).to.deep.equal([
      2,
      `API: ${test.url}\n${test.url} answers 404: There is no such run.\n`,
    ]);
  });
});
