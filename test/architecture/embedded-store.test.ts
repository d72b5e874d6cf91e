import { expect } from "chai";
import { joinStages } from "../../src/embedded/mongo/aggregate/joins.ts";
import { accumulators, stages } from "../../src/embedded/mongo/aggregate/pipeline.ts";
import { filterOperators, logicalOperators } from "../../src/embedded/mongo/query/filter.ts";
import { projectionOperators } from "../../src/embedded/mongo/query/projection.ts";
import { searchClauses, searchOperators, searchStages } from "../../src/embedded/mongo/search/search-stages.ts";
import { pushClauses, updateOperators, updatePositions } from "../../src/embedded/mongo/update/update.ts";
import { commands } from "../../src/embedded/mongo/wire/dispatch.ts";
import { sourceFiles } from "./source-files.ts";

/** Commands that the store does not ask for by name, and why they are there all the same. */
const implied: Readonly<Record<string, string>> = {
  hello: "the driver's question who is there",
  ismaster: "the driver's first question on a connection",
  endSessions: "the driver says that it leaves",
  getMore: "the driver reads on in a cursor",
  killCursors: "the driver leaves a cursor early",
  delete: "what the driver makes of deleteOne and deleteMany",
  findAndModify: "what the driver makes of findOneAndUpdate",
  dropDatabase: "the tests remove what they have written",
  serverStatus: "the tests and measurements ask for the id of the process",
};

const MAX_LINES = 5_434;

describe("the embedded store offers what src/store asks for", () => {
  const store = sourceFiles("src/store")
    .map(({ text }) => text)
    .join("");
  const isField = (name: string) => new RegExp(`[\\s{,]"?${name.replace("$", "\\$")}"?:`).test(store);
  const isMethod = (name: string) => new RegExp(`\\.${name}[<(]`).test(store);
  const named = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, name]));
  const tables: Record<string, object> = {
    stage: { ...stages, ...searchStages, ...joinStages },
    accumulator: accumulators,
    "filter operator": { ...logicalOperators, ...filterOperators },
    "update operator": updateOperators,
    "clause of $push": named(pushClauses),
    "projection operator": projectionOperators,
    "part of $search": named([...searchClauses, ...searchOperators]),
  };
  for (const [kind, table] of Object.entries(tables)) {
    it(`has no ${kind} that it does not need`, () => {
      const names = Object.keys(table);
      expect(names).to.not.deep.equal([]);
      for (const name of names) {
        const isAsked = isField(name) || (Object.hasOwn(searchStages, name) && isMethod(name.slice(1)));
        expect(isAsked, `no file of src/store uses the ${kind} ${name}: delete it from src/embedded`).to.equal(true);
      }
    });
  }

  it("has no position in updates that it does not need", () => {
    for (const position of updatePositions) {
      expect(store, `no file of src/store updates ${position}: delete it from src/embedded`).to.include(`.${position}`);
    }
  });

  it("has no command that it does not need", () => {
    for (const name of commands.keys()) {
      const isNeeded = Object.hasOwn(implied, name) || isField(name) || isMethod(name);
      expect(isNeeded, `no file of src/store uses the command ${name}: delete it from src/embedded`).to.equal(true);
    }
    for (const name of Object.keys(implied))
      expect(commands.has(name), `${name} is gone: delete it here`).to.equal(true);
  });

  it(`has at most ${MAX_LINES} lines`, () => {
    const lines = sourceFiles("src/embedded").reduce((sum, { text }) => sum + text.split("\n").length - 1, 0);
    expect(lines).to.be.at.most(MAX_LINES);
  });
});
