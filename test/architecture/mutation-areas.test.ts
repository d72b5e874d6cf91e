import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { areas } from "../../scripts/mutate/areas.ts";

const root = new URL("../../", import.meta.url);

describe("the areas of the mutation run", () => {
  for (const [name, { files, tests }] of Object.entries(areas)) {
    it(`${name}: has files and tests that exist`, () => {
      const missing = [...files, ...tests].filter((file) => !existsSync(fileURLToPath(new URL(file, root))));
      expect(missing).to.deep.equal([]);
    });
  }
});
