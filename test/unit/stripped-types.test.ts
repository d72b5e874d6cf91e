import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { root } from "../architecture/source-files.ts";

const run = promisify(execFile);
const script = "scripts/start/stripped-types.mjs";
/** Prints what the module has, and whether Node's compiler was loaded for it. */
const program = `
  const { value } = await import("./src/value.ts");
  const list = process.moduleLoadList.join();
  console.log(JSON.stringify({ value, isCompiled: list.includes("amaro") }));
`;

describe("TypeScript that is kept without its types", () => {
  let folder: string;
  const write = (text: string) => writeFile(join(folder, "src/value.ts"), text);
  const node = (...args: string[]) => run(process.execPath, args, { cwd: folder });
  const load = async () => {
    const { stdout, stderr } = await node(`--import=./${script}`, "--input-type=module", "--eval", program);
    return { ...JSON.parse(stdout), stderr };
  };
  const cache = () => join(folder, "node_modules/.cache/switchyard-types");

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "switchyard-types-"));
    await Promise.all(
      ["scripts/start", "src", "node_modules"].map((path) => mkdir(join(folder, path), { recursive: true })),
    );
    await cp(join(root, script), join(folder, script));
    await writeFile(join(folder, "package.json"), '{ "type": "module" }');
    await write('export const value: string = "first";\n');
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  it("is loaded without the compiler, and without a word, from the second time on", async () => {
    expect(await load()).to.deep.equal({ value: "first", isCompiled: true, stderr: "" });
    expect(await load()).to.deep.equal({ value: "first", isCompiled: false, stderr: "" });
  });

  it("is made anew for a file that has changed, in the same place", async () => {
    await load();
    await write('export const value: string = "second";\n');
    expect(await load()).to.include({ value: "second", isCompiled: true });
    expect(await load()).to.include({ value: "second", isCompiled: false });
    expect(await readdir(cache())).to.deep.equal(["src%2Fvalue.ts"]);
  });

  it("is not taken when it is not whole", async () => {
    await load();
    const kept = join(cache(), "src%2Fvalue.ts");
    await truncate(kept, (await readFile(kept)).length - 1);
    expect(await load()).to.include({ value: "first", isCompiled: true });
    expect(await load()).to.include({ value: "first", isCompiled: false });
  });

  it("is made for all files beforehand, for a tree that cannot be written later", async () => {
    await node(script);
    expect(await load()).to.include({ value: "first", isCompiled: false });
  });

  it("is done without where nothing can be kept", async () => {
    await writeFile(join(folder, "node_modules/.cache"), "in the way");
    expect(await load()).to.include({ value: "first", isCompiled: true });
    expect(await load()).to.include({ value: "first", isCompiled: true });
  });

  it("leaves it to Node to say what is wrong with a file", async () => {
    await write("export enum value { first }\n");
    const { stderr } = await load().catch((error) => error);
    expect(stderr).to.match(/value\.ts:1[\s\S]*enum is not supported in strip-only mode/);
  });
});
