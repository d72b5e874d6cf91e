import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { skipTest } from "./skip-test.ts";

/** `nobody`, who shares the machine and nothing else. */
export const OTHER_UID = 65_534;

/** Called before each test: skips it where this process may not become another user. */
export function needRoot(context: Mocha.Context): void {
  if (process.getuid?.() !== 0) skipTest(context, "only root can act as another user");
}

export type OtherUser = {
  /** The lines that it has printed so far. */
  lines: string[];
  /** Ends its standard input, waits for its end, and answers its lines. */
  end(): Promise<string[]>;
};

/** Runs a script of Node as another user, and waits until it has printed `ready`. */
export async function startAsOther(code: string, args: readonly string[]): Promise<OtherUser> {
  const child: ChildProcess = spawn(process.execPath, ["--input-type=module", "--eval", code, ...args], {
    uid: OTHER_UID,
    gid: OTHER_UID,
    cwd: "/",
    env: {},
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines: string[] = [];
  let rest = "";
  const ended = once(child, "close");
  const ready = new Promise<void>((resolve, reject) => {
    child.once("close", (code) => reject(new Error(`the other user's process has ended with code ${code}`)));
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      const [last = "", ...whole] = `${rest}${text}`.split("\n").reverse();
      rest = last;
      lines.push(...whole.reverse().filter((line) => line !== "ready"));
      if (whole.includes("ready")) resolve();
    });
  });
  await ready;
  return {
    lines,
    end: async () => {
      if (child.exitCode === null) child.stdin?.end();
      await ended;
      return lines;
    },
  };
}
