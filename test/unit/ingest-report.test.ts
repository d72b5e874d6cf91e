import { PassThrough } from "node:stream";
import { expect } from "chai";
import { showProgress } from "../../scripts/ingest/report.ts";

/** A terminal of 80 columns that keeps what is written to it. */
function openTerminal() {
  const parts: string[] = [];
  const stream = Object.assign(new PassThrough(), { isTTY: true, columns: 80 });
  stream.on("data", (part: Buffer) => parts.push(part.toString()));
  return { stream: stream as unknown as typeof process.stderr, read: () => parts.join("") }; // all that a bar asks of one
}

describe("the progress bar of the ingest command", () => {
  it("leaves the cursor below itself, and draws nothing once it has stopped", () => {
    const { stream, read } = openTerminal();
    const progress = showProgress(2, false, stream);
    progress.onEnd(false);
    progress.say("stopping …");
    progress.onEnd(true);
    progress.stop();
    const drawn = read();
    expect(drawn).to.match(/2\/2 .*1 failed/);
    expect(drawn).to.include("stopping …");
    expect(drawn.endsWith("\n"), JSON.stringify(drawn.slice(-40))).to.equal(true);
    expect(drawn, "the cursor goes back to where the bar began").not.to.include("\u001b8");
    progress.onEnd(false);
    expect(read()).to.equal(drawn);
  });
});
