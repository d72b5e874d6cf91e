import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { warnOfNearSettings } from "../../scripts/start/near-settings.ts";
import { loadConfig, settings } from "../../src/config/config.ts";
import { fileSettingOf } from "../../src/config/secret-files.ts";

describe("a setting that holds a secret", () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "switchyard-secrets-"));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  async function fileWith(text: string): Promise<string> {
    const path = join(folder, `file-${Math.random()}`);
    await writeFile(path, text);
    return path;
  }

  it("comes from the file that its _FILE names, without the line end, and is checked as a value is", async () => {
    const { identity, mongo, http, gateway } = loadConfig({
      MASTER_KEY_FILE: await fileWith(`${"A".repeat(43)}=\r\n`),
      MONGODB_URL_FILE: await fileWith("mongodb://ana:p%20w@127.0.0.1/\n"),
      ADMIN_TOKEN_FILE: await fileWith("  twelve-letters\n\n"),
      OPENAI_API_KEY_FILE: await fileWith("sk-openai"),
    });
    expect(identity.masterKey).to.equal(`${"A".repeat(43)}=`);
    expect(mongo.url).to.equal("mongodb://ana:p%20w@127.0.0.1/");
    expect(http.adminToken).to.equal("twelve-letters");
    expect(gateway.providers.openai.apiKey).to.equal("sk-openai");
    const wrong = await fileWith("localhost:6379");
    expect(() => loadConfig({ REDIS_URL_FILE: wrong })).to.throw("\n  REDIS_URL: must be a URL");
  });

  it("stops the start by name, without its contents, when a file is missing, a folder or empty", async () => {
    const gone = join(folder, "gone");
    const empty = await fileWith("\n");
    const env = { MASTER_KEY_FILE: gone, EDGE_API_KEY_FILE: folder, ADMIN_TOKEN_FILE: empty };
    expect(() => loadConfig(env))
      .to.throw(`MASTER_KEY_FILE: ${gone} cannot be read (ENOENT)`)
      .with.property("message")
      .that.contains(`EDGE_API_KEY_FILE: ${folder} cannot be read (EISDIR)`)
      .and.contains(`ADMIN_TOKEN_FILE: ${empty} is empty`);
  });

  it("takes its value before its file, and an empty name of a file as none", async () => {
    const path = join(folder, "gone");
    expect(loadConfig({ ADMIN_TOKEN: "of-the-value", ADMIN_TOKEN_FILE: path }).http.adminToken).to.equal(
      "of-the-value",
    );
    expect(loadConfig({ ADMIN_TOKEN_FILE: "" }).http.adminToken).to.equal(undefined);
  });

  it("is one that holds a key, a token or a URL with a password; others have no file", async () => {
    const names = Object.keys(settings).filter((name) => fileSettingOf(name) !== undefined);
    expect(names.filter((name) => !name.endsWith("_API_KEY"))).to.have.members([
      "ADMIN_TOKEN",
      "MASTER_KEY",
      "MONGODB_URL",
      "OTEL_EXPORTER_OTLP_HEADERS",
      "REDIS_URL",
    ]);
    for (const name of Object.keys(settings)) {
      if (/KEY$|TOKEN$|SECRET|PASSWORD|HEADERS/.test(name)) expect(names, name).to.include(name);
    }
    expect(loadConfig({ PORT_FILE: await fileWith("1") }).http.port).to.equal(3000);
    expect(warnOfNearSettings({ MASTER_KEY_FLIE: "x", MASTER_KEY_FILE: "y" })).to.deep.equal([]);
    expect(warnOfNearSettings({ MASTER_KEY_FLIE: "x" })).to.deep.equal([
      "MASTER_KEY_FLIE is no setting. Did you mean MASTER_KEY_FILE?",
    ]);
  });
});
