import { AppError } from "../lib/errors.ts";
import { addCounts } from "./counts.ts";
import { type Finding, findValues, type GuardKind } from "./guard.ts";
import { makeMarks } from "./marks.ts";
import type { GuardAction, GuardCount, GuardPlace, RulesOfPlaces } from "./rules.ts";
import { makeStreamGuard, type StreamGuard } from "./stream-guard.ts";

/**
 * A text of a call, by the name of its field. `isJson`: a mark for a bare number in it is a string. `label`: what names it, as `ssn`
 * does in `{"ssn": "219099999"}`.
 */
export type GuardedText = { place: GuardPlace; field: string; text: string; isJson?: boolean; label?: string };

export type CallGuard = ReturnType<typeof makeCallGuard>;

/** Findings that an error lists at most. */
const MAX_LISTED = 50;

type Options = {
  rules: RulesOfPlaces;
  /** Whether the values are put back into the answer. */
  restores?: boolean;
  /** Told of what is found, once for each text. */
  onFound?(counts: readonly GuardCount[]): void;
  /** Told of what is not let through, before the error of it is thrown. */
  onBlocked?(counts: readonly GuardCount[]): void;
};

/** What guards the texts of one call: it masks, counts or refuses by the rules of their places. */
export function makeCallGuard({ rules, restores = false, onFound, onBlocked }: Options) {
  const marks = makeMarks();
  const { note, found } = makeCounts(rules, onFound);
  const valuesIn = ({ text, place, label = "" }: GuardedText) => findLabelled(text, label, [...rules[place].keys()]);
  const isOf = (place: GuardPlace, action: string) => (kind: GuardKind) => rules[place].get(kind) === action;
  /** A text with marks in the place of values. */
  const mask = (text: string, values: readonly Finding[], isMasked: (kind: GuardKind) => boolean, isJson = false) => {
    let masked = "";
    let at = 0;
    const quotes = makeQuotes(isJson);
    for (const { kind, start, end } of values) {
      if (!isMasked(kind)) continue;
      const before = text.slice(at, start);
      masked += before + quotes.around(marks.of(kind, text.slice(start, end)), before);
      at = end;
    }
    return masked + text.slice(at);
  };
  const block = (blocked: readonly Blocked[]): never => {
    const counts: GuardCount[] = [];
    for (const { kind, place } of blocked) addCounts(counts, [{ kind, place, action: "block", count: 1 }]);
    onBlocked?.(counts);
    throw refusal(blocked);
  };
  return {
    /** Whether anything is looked for at one of these places. */
    isOn: (...places: GuardPlace[]) => places.some((place) => rules[place].size > 0),
    /** Whether a place has a kind that is treated so. */
    has: (place: GuardPlace, ...actions: string[]) => [...rules[place].values()].some((one) => actions.includes(one)),
    /** The values of a text, each with what would be done with it. */
    read(given: GuardedText): (Finding & { action: Exclude<GuardAction, "off"> })[] {
      return valuesIn(given).flatMap((finding) => {
        const action = rules[given.place].get(finding.kind);
        return action === undefined ? [] : [{ ...finding, action }];
      });
    },
    /**
     * The texts as they may go on, in their order. @throws AppError `compliance_blocked`, its details naming kinds and positions
     * (UTF-16 units), never values; `unavailable` if a guard fails, which lets nothing through. `isCounted`: not for texts that say
     * again what others have said.
     */
    take(texts: readonly GuardedText[], { isCounted = true } = {}): string[] {
      for (const { text } of texts) marks.avoid(text);
      const read = texts.map((one) => ({ ...one, values: valuesIn(one) }));
      if (isCounted) for (const { place, values } of read) note(place, values);
      const blocked = read.flatMap(({ place, field, values }) =>
        values.flatMap(({ kind, start, end }) =>
          isOf(place, "block")(kind) ? [{ place, field, kind, start, end }] : [],
        ),
      );
      if (blocked.length > 0) block(blocked);
      return read.map(({ text, place, values, isJson }) => mask(text, values, isOf(place, "mask"), isJson));
    },
    /**
     * A text as the call logs keep it: nothing that is masked or refused at `place`, or in logs, stands in it. It is not counted.
     */
    toLogged(text: string, place: GuardPlace): string {
      const isHidden = (kind: GuardKind) =>
        (["mask", "block"] as const).some((action) => isOf(place, action)(kind) || isOf("log", action)(kind));
      const kinds = [...new Set([...rules[place].keys(), ...rules.log.keys()])].filter(isHidden);
      return kinds.length === 0 ? text : mask(text, findSafely(text, kinds), isHidden);
    },
    /** @throws AppError `compliance_blocked`, for a picture or a file, which no guard reads. */
    refuseMedia(param: string): never {
      onBlocked?.([]);
      const message = `${param}: your guards take no pictures and no files, which they cannot read. Nothing of it was sent on.`;
      throw new AppError("compliance_blocked", message, { param });
    },
    /** Guards a text that comes in parts; its `push` and `end` throw as `take` does. */
    stream(place: GuardPlace, field: string, isJson = false): StreamGuard {
      const kinds = [...rules[place].keys()];
      const quotes = makeQuotes(isJson);
      return makeStreamGuard(kinds, (finding, value, before) => {
        const { kind } = finding;
        note(place, [finding]);
        if (isOf(place, "block")(kind)) block([{ place, field, kind }]);
        return isOf(place, "mask")(kind) ? quotes.around(marks.of(kind, value), before) : value;
      });
    },
    /** Whether the values are put back into the answer; for a call that keeps nothing of it. */
    restores,
    seal: marks.seal,
    restore: marks.restore,
    restoring: marks.restoring,
    /** What was found so far. */
    found,
  };
}

/** Counts what is found, by place and kind. */
function makeCounts(rules: RulesOfPlaces, onFound: Options["onFound"]) {
  const counts: GuardCount[] = [];
  return {
    note(place: GuardPlace, findings: readonly Pick<Finding, "kind">[]): void {
      const added: GuardCount[] = [];
      for (const { kind } of findings) {
        const action = rules[place].get(kind);
        if (action !== undefined) addCounts(added, [{ kind, place, action, count: 1 }]);
      }
      addCounts(counts, added);
      if (added.length > 0) onFound?.(added);
    },
    found: (): GuardCount[] => counts.map((one) => ({ ...one })),
  };
}

type Blocked = { place: GuardPlace; field: string; kind: GuardKind; start?: number; end?: number };

function refusal(blocked: readonly Blocked[]): AppError {
  const kinds = [...new Set(blocked.map(({ kind }) => kind))];
  const [first] = blocked;
  const words = kinds.join(", ").replaceAll("_", " ");
  const isOfAnswer = first?.place === "output";
  const message = isOfAnswer
    ? `The answer held ${words}, which your guards do not let through. It was withheld.`
    : `Your guards do not let ${words} through. Nothing of it was sent on.`;
  const details = { kinds, findings: blocked.slice(0, MAX_LISTED) };
  return new AppError("compliance_blocked", message, { ...(first && !isOfAnswer && { param: first.field }), details });
}

/** A guard that fails lets nothing through. The cause is left out: its message could quote the text. */
function findSafely(text: string, kinds: readonly GuardKind[]): Finding[] {
  if (kinds.length === 0 || text === "") return [];
  try {
    return findValues(text, kinds);
  } catch {
    const message = "The guards are not available right now; nothing was processed.";
    throw new AppError("unavailable", message, { retryable: true, retryAfterMs: 2_000 });
  }
}

/** The values of a text that a label stands before. */
function findLabelled(text: string, label: string, kinds: readonly GuardKind[]): Finding[] {
  if (label === "") return findSafely(text, kinds);
  const before = `${label}: `;
  return findSafely(before + text, kinds).flatMap(({ kind, start, end }) => {
    const place = { kind, start: Math.max(0, start - before.length), end: end - before.length };
    return place.end > 0 ? [place] : [];
  });
}

/** Puts quotes around a mark that stands for a bare number of JSON. */
function makeQuotes(isJson: boolean) {
  let isInside = false;
  return {
    around(made: string, before: string): string {
      if (!isJson) return made;
      for (const [one] of before.matchAll(/\\.|"/gs)) if (one === '"') isInside = !isInside;
      return isInside ? made : `"${made}"`;
    },
  };
}
