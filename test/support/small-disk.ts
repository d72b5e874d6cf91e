import { execFileSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmdirSync, rmSync, statSync, truncateSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export type SmallDisk = {
  path: string;
  /** Fills it to the last page, or but for so many MiB, as a program beside the product does. */
  fill(options?: { butMiB: number }): void;
  /** Removes what filled it. */
  free(): void;
  close(): void;
};

/** A file system of its own, of so many MiB. Only root can mount one. */
export function mountDisk(sizeMiB: number): SmallDisk {
  const path = mkdtempSync(join(tmpdir(), "switchyard-disk-"));
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${sizeMiB}m,mode=700`, "tmpfs", path]);
  const ballast = join(path, "ballast");
  return {
    path,
    fill({ butMiB } = { butMiB: 0 }) {
      const file = openSync(ballast, "a");
      const block = Buffer.alloc(1 << 20);
      for (let size = block.length; size >= 1 << 10; ) {
        try {
          writeSync(file, block, 0, size);
        } catch {
          size /= 2;
        }
      }
      closeSync(file);
      truncateSync(ballast, statSync(ballast).size - butMiB * block.length);
    },
    free: () => rmSync(ballast, { force: true }),
    close() {
      execFileSync("umount", ["--lazy", path]);
      rmdirSync(path);
    },
  };
}
