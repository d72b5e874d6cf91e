import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { root } from "../architecture/source-files.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

type Example = { title: string; method: string; url: string; headers: Record<string, string>; body: string };

const folder = join(root, "examples", "http");

/** The requests of a .http file; `{{url}}` and `{{key}}` are still in them. */
function readExamples(text: string): Example[] {
  return text
    .split(/^### /m)
    .slice(1)
    .map((part) => {
      const [head = "", ...body] = part.trim().split("\n\n");
      const [title = "", first = "", ...headerLines] = head.split("\n");
      const [method = "", url = ""] = first.split(" ");
      const headers = Object.fromEntries(headerLines.map((line) => line.split(": ") as [string, string])); // one a line
      return { title, method, url, headers, body: body.join("\n\n") };
    });
}

describe("the requests of examples/http", function () {
  this.timeout(60_000);
  let test: TestPlatform;
  before(async () => {
    test = await startPlatform();
  });
  after(() => test.close());

  for (const name of readdirSync(folder)) {
    const examples = readExamples(readFileSync(join(folder, name), "utf8"));
    it(`${name} has some`, () => expect(examples).to.have.length.above(1));
    for (const { title, method, url, headers, body } of examples) {
      it(`${name} are answered as they stand: ${title}`, async () => {
        const fill = (text: string) => text.replace("{{url}}", test.url).replace("{{key}}", test.keys.owner);
        const response = await fetch(fill(url), {
          method,
          headers: Object.entries(headers).map(([field, value]): [string, string] => [field, fill(value)]),
          ...(body === "" ? {} : { body }),
        });
        const text = await response.text();
        expect(response.status, text).to.be.within(200, 299);
        expect(text, "no error in a response of JSON-RPC").not.to.contain('"error":{');
      });
    }
  }
});
