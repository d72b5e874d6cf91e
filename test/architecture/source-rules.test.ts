import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { z } from "zod";
import { withSettings } from "../../scripts/readme-settings.ts";
import { queues } from "../../src/jobs/queues.ts";
import { root, sourceFiles } from "./source-files.ts";

const MAX_LINES = 300;
const MAX_TEST_LINES = 500;

describe("the rules of the source", () => {
  it(`keeps files under ${MAX_LINES} lines, tests under ${MAX_TEST_LINES}`, () => {
    const lines = (text: string) => text.split("\n").length - 1;
    const long = [
      ...sourceFiles("src", "api", "workers", "scripts").filter(({ text }) => lines(text) > MAX_LINES),
      ...sourceFiles("test").filter(({ text }) => lines(text) > MAX_TEST_LINES),
    ].map(({ path, text }) => `${path}: ${lines(text)}; find the second idea in it`);
    expect(long).to.deep.equal([]);
  });

  it("reads the environment in src/config.ts alone", () => {
    const readers = sourceFiles("src", "api", "workers")
      .filter(({ path, text }) => path !== "src/config.ts" && /process\.env\b/.test(text))
      .map(({ path }) => `${path}: take the part of Config that it needs as an argument`);
    expect(readers).to.deep.equal([]);
  });

  it("names each queue in src/jobs/queues.ts alone", () => {
    const names = Object.values(queues).map((queue) => queue.name);
    const strings = sourceFiles("src", "api", "workers")
      .filter(({ path }) => !["src/jobs/queues.ts", "src/jobs/define-queue.ts"].includes(path))
      .flatMap(({ path, text }) =>
        names
          .filter((name) => new RegExp(`["'\`]${name}["'\`]`).test(text))
          .map((name) => `${path}: "${name}"; import the queue`),
      );
    expect(strings).to.deep.equal([]);
  });

  it("has payloads of ids only, strict and small", () => {
    for (const queue of Object.values(queues)) {
      const schema = z.toJSONSchema(queue.payload) as {
        additionalProperties?: unknown;
        properties?: Record<string, object>;
      };
      expect(schema.additionalProperties, `${queue.name} takes unknown fields`).to.equal(false);
      for (const [field, property] of Object.entries(schema.properties ?? {})) {
        const isClosed = ["const", "enum", "pattern"].some((keyword) => keyword in property);
        expect(isClosed, `${queue.name}.${field} is free text`).to.equal(true);
      }
    }
  });

  it("has a README whose settings are those of src/config.ts", async () => {
    const readme = await readFile(join(root, "README.md"), "utf8");
    expect(withSettings(readme), "run `node scripts/readme-settings.ts`").to.equal(readme);
  });
});
