import { z } from "zod";
import type { GuardKind } from "./guard.ts";

/** What is done with a value: nothing; it is counted; a mark stands in its place; the text is refused. */
export const guardActions = ["off", "flag", "mask", "block"] as const;
export type GuardAction = (typeof guardActions)[number];

/** Where a text goes to a model or comes from one, is kept as a document, or is written to the call logs. */
export const guardPlaces = ["input", "output", "toolInput", "toolOutput", "ingest", "log"] as const;
export type GuardPlace = (typeof guardPlaces)[number];

/** What is done with values of a kind, by place; absent: nothing. */
export type GuardRules = Partial<Record<GuardKind, Partial<Record<GuardPlace, GuardAction | undefined>> | undefined>>;

/** How many values of a kind were found at a place. Never the values. */
export type GuardCount = { kind: GuardKind; place: GuardPlace; action: Exclude<GuardAction, "off">; count: number };

/** What is done at one place with each kind that is looked for there. */
type PlaceRules = ReadonlyMap<GuardKind, Exclude<GuardAction, "off">>;

export type RulesOfPlaces = Readonly<Record<GuardPlace, PlaceRules>>;

/** Rules by place. */
export function byPlace(rules: GuardRules): RulesOfPlaces {
  const at = (place: GuardPlace): PlaceRules => {
    const ofPlace = Object.entries(rules).flatMap(([kind, actions]) => {
      const action = actions?.[place];
      return action === undefined || action === "off" ? [] : [[kind as GuardKind, action] as const]; // the keys are kinds
    });
    return new Map(ofPlace);
  };
  return {
    input: at("input"),
    output: at("output"),
    toolInput: at("toolInput"),
    toolOutput: at("toolOutput"),
    ingest: at("ingest"),
    log: at("log"),
  };
}

/** What guards have found, as it is shown. */
export const guardCountsSchema = z
  .array(z.object({ kind: z.string(), place: z.string(), action: z.string(), count: z.number().int() }))
  .describe("What guards have found in its texts: how many values of a kind, by place. Never the values");

/** Adds counts to those of the same kind, place and action. */
export function addCounts(all: GuardCount[], more: readonly GuardCount[]): void {
  for (const { kind, place, action, count } of more) {
    const known = all.find((one) => one.kind === kind && one.place === place && one.action === action);
    if (known) known.count += count;
    else all.push({ kind, place, action, count });
  }
}
