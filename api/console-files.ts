import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const folder = new URL("console/", import.meta.url);

/** Packages that the console's files import by name; each is one module without imports of others but these. */
const packages = ["preact", "preact/hooks", "htm", "marked", "dompurify"] as const;

/** `import … from "preact/hooks"`, as `./preact-hooks.js`: browsers find no packages by name, and an import map would be inline. */
const namedImport = new RegExp(`\\bfrom\\s*"(${packages.join("|")})"`, "g");
const fileOf = (name: string) => `${name.replace("/", "-")}.js`;

const withPaths = (text: string) => text.replace(namedImport, (_, name: string) => `from "./${fileOf(name)}"`);

/** The files that the console's page loads, by name: its own, and those of packages. Read once, at the first request. */
export async function readConsoleFiles(): Promise<ReadonlyMap<string, string>> {
  const names = (await readdir(folder)).filter((name) => /\.(?:js|css)$/.test(name));
  const own = names.map((name) => [name, new URL(name, folder)] as const);
  const others = packages.map((name) => [fileOf(name), new URL(import.meta.resolve(name))] as const);
  const read = [...own, ...others].map(async ([name, url]) => {
    const text = await readFile(fileURLToPath(url), "utf8");
    return [name, name.endsWith(".js") ? withPaths(text) : text] as const;
  });
  return new Map(await Promise.all(read));
}
