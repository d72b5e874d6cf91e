import { execFile } from "node:child_process";
import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";

const run = promisify(execFile);
const DOWNLOAD_TIMEOUT_MS = 600_000;

/** Debian's packages cannot be had here. */
export class NoPackages extends Error {
  override name = "NoPackages";
}

/** Downloads packages by apt and unpacks each into a folder of its name; nothing is installed. @throws NoPackages */
export async function fetchPackages(names: readonly string[], folder: string): Promise<void> {
  const missing: string[] = [];
  const present = await readdir(folder);
  for (const name of names) if (!present.includes(name)) missing.push(name);
  if (missing.length === 0) return;
  const options = { cwd: folder, timeout: DOWNLOAD_TIMEOUT_MS };
  await run("apt-get", ["download", "-q", ...missing], options).catch((error: Error) => {
    throw new NoPackages(`apt-get could not download the packages of the manuals: ${error.message}`);
  });
  const archives = (await readdir(folder)).filter((name) => name.endsWith(".deb"));
  for (const name of missing) {
    const archive = archives.find((file) => file.startsWith(`${name}_`));
    if (archive === undefined) throw new NoPackages(`apt-get has downloaded no ${name}.`);
    await mkdir(join(folder, name));
    await run("dpkg-deb", ["-x", archive, name], options);
  }
}

/** A file of an unpacked package, decompressed. */
export async function readManual(folder: string, { package: name, path }: { package: string; path: string }) {
  const bytes = await readFile(join(folder, name, path));
  return new Uint8Array(path.endsWith(".gz") ? await promisify(gunzip)(bytes) : bytes);
}
