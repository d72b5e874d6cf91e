// `node --import ./scripts/start/stripped-types.mjs …`: keeps our TypeScript without its types beside the packages, so that a
// process does not load Node's compiler for that, which takes 22 MB of its memory for good. What is kept is used while file
// and Node are the ones that it was made of and by; where it is not, or cannot be written, all works as without this.
// Run by itself, it makes all that are missing, as for an image that is read-only.
import { hash } from "node:crypto";
import { globSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { registerHooks, stripTypeScriptTypes } from "node:module";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
const folder = join(root, "node_modules", ".cache", "switchyard-types");
const ours = new URL("../../", import.meta.url).href;
const packages = new URL("node_modules/", ours).href;

registerHooks({
  load(url, context, nextLoad) {
    if (!url.startsWith(ours) || !url.endsWith(".ts") || url.startsWith(packages)) return nextLoad(url, context);
    const source = withoutTypes(fileURLToPath(url));
    return source === undefined ? nextLoad(url, context) : { format: "module", source, shortCircuit: true };
  },
});

if (import.meta.main) {
  for (const path of globSync("{api,scripts,src,workers}/**/*.ts", { cwd: root })) withoutTypes(join(root, path));
}

/** The code of a file, each character where it was; undefined where Node has to say what is wrong with it. */
function withoutTypes(path) {
  const source = readFileSync(path, "utf8");
  const mark = `\n// ${process.version} ${hash("sha256", source)}`;
  const keptPath = join(folder, encodeURIComponent(relative(root, path)));
  const kept = tryTo(() => readFileSync(keptPath, "utf8"));
  if (kept?.endsWith(mark)) return kept;
  const code = tryTo(() => strip(source));
  if (code === undefined) return undefined;
  tryTo(() => keep(keptPath, code + mark));
  return code;
}

function strip(source) {
  const { emitWarning } = process;
  process.emitWarning = () => undefined; // that this is experimental; it is what Node itself does with the file
  try {
    return stripTypeScriptTypes(source);
  } finally {
    process.emitWarning = emitWarning;
  }
}

/** Other processes start at the same time and keep the same: each reads a whole file or none. */
function keep(path, text) {
  mkdirSync(folder, { recursive: true });
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, text);
  renameSync(draft, path);
}

function tryTo(work) {
  try {
    return work();
  } catch {
    return undefined;
  }
}
