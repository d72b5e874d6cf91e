import { expect } from "chai";
import { toAnthropicResults } from "../../api/routes/anthropic/batches.ts";

const message = (id: string, text: string) =>
  JSON.stringify({
    custom_id: id,
    result: { type: "succeeded", message: { text, input: { result: { type: "errored" } } } },
  });
const failure = JSON.stringify({
  custom_id: "b",
  result: { type: "errored", error: { type: "server_error", code: "internal", message: "It fäiled." }, jobId: "job_1" },
});
const lines = [
  message("a", "ä".repeat(400)),
  failure,
  JSON.stringify({ custom_id: "c", result: { type: "canceled" } }),
  failure,
];

describe("results of batches of messages", () => {
  it("are the same, however their bytes are parted", async () => {
    const bytes = Buffer.from(`${lines.join("\n")}\n`);
    const texts = new Set<string>();
    for (const size of [1, 7, 159, 160, 161, 500, bytes.length]) {
      async function* pieces() {
        for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size);
      }
      texts.add(Buffer.concat(await Array.fromAsync(toAnthropicResults(pieces()))).toString("utf8"));
    }
    expect(texts.size).to.equal(1);
    const [first, second, third, fourth, end] = [...texts].join("").split("\n");
    expect([first, third, end]).to.deep.equal([lines[0], lines[2], ""]);
    expect(second).to.equal(fourth);
    expect(JSON.parse(second ?? "").result.error).to.deep.include({ type: "error", request_id: "job_1" });
  });
});
