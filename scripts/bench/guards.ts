import { readFile } from "node:fs/promises";
import { inspect } from "../../src/composite/guards/guard.ts";
import { type ProfileId, profiles } from "../../src/composite/profiles.ts";
import type { Measured } from "./goals.ts";

const data = new URL("../../test/support/data/pii-public.jsonl", import.meta.url);
const MEGABYTE = 1 << 20;

type Row = { text: string; entity: string; profile: ProfileId; should_block: boolean };

/** What the guards find of a labelled collection, each miss named; and how long a megabyte of near misses takes. */
export async function guardsBench(): Promise<Measured[]> {
  const rows = (await readFile(data, "utf8"))
    .split("\n")
    .filter((line) => line.length > 0)
    .map((line) => JSON.parse(line) as Row);
  const judged = rows.map((row) => ({ row, isBlocked: inspect(row.text, profiles[row.profile].guards).length > 0 }));
  for (const { row, isBlocked } of judged) {
    if (isBlocked === row.should_block) continue;
    console.log(`${isBlocked ? "stopped in vain" : "let through"}: ${row.profile} ${row.entity}: ${row.text}`);
  }
  const share = (shouldBlock: boolean) => {
    const those = judged.filter(({ row }) => row.should_block === shouldBlock);
    const right = those.filter(({ isBlocked }) => isBlocked === shouldBlock).length;
    return { value: right / those.length, product: `${right} of ${those.length}` };
  };
  const anchor = `${rows.length} labelled texts`;
  return [
    { what: "guards, recall", anchor, ...share(true), must: 0.98, aim: 1, isMoreBetter: true, unit: "" },
    { what: "guards, specificity", anchor, ...share(false), must: 0.97, aim: 1, isMoreBetter: true, unit: "" },
    timeOfNearMisses(),
  ];
}

function timeOfNearMisses(): Measured {
  const seed =
    "ssn 12345678, mrn 1 mg, card 4242 4242 4242 4241, dob 99/99/9999, account balance 1234567, gb82 west 1234 ";
  const text = seed.repeat(Math.ceil(MEGABYTE / seed.length));
  const worst = Math.max(...Object.values(profiles).map(({ guards }) => bestOf(5, () => inspect(text, guards))));
  return {
    what: "guards, 1 MB of near misses, the slower profile",
    anchor: "none",
    product: `${worst.toFixed(0)} ms`,
    value: worst,
    must: 200,
    aim: 100,
    isMoreBetter: false,
    unit: " ms",
  };
}

/** The shortest of several runs, in ms. */
function bestOf(attempts: number, run: () => void): number {
  const times = Array.from({ length: attempts }, () => {
    const startedAt = performance.now();
    run();
    return performance.now() - startedAt;
  });
  return Math.min(...times);
}
