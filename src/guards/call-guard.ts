import { AppError } from "../lib/errors.ts";
import type { Finding, GuardKind } from "./guard.ts";
import { makeMarks } from "./marks.ts";
import { readAtOnce, readTexts, readUntil } from "./read-texts.ts";
import type { GuardAction, GuardCount, GuardPlace, RulesOfPlaces } from "./rules.ts";
import { addCounts } from "./rules.ts";
import { makeStreamGuard, type StreamGuard } from "./stream-guard.ts";

/**
 * A text of a call, by the name of its field. `isJson`: a mark for a bare number in it is a string. `label`: what names it, as `ssn`
 * does in `{"ssn": "219099999"}`. `isId`: a mark in it has letters, digits and `_` alone.
 */
export type GuardedText = {
  place: GuardPlace;
  field: string;
  text: string;
  isJson?: boolean;
  isId?: boolean;
  label?: string;
};

export type CallGuard = ReturnType<typeof makeCallGuard>;

/** Texts of fewer characters in all are read at once. */
const SHORT = 2_000;
/** Findings that an error lists at most. */
const MAX_LISTED = 50;

/** `isCounted`: not for texts that say again what others have said. `isExact`: ids or addresses, which cannot be masked. */
type How = { isCounted?: boolean; isExact?: boolean };

type Options = {
  rules: RulesOfPlaces;
  /** Whether the values are put back into the answer. */
  restores?: boolean;
  /** Does a step of some milliseconds when it is its turn; default: at once. */
  inTurn?<T>(step: () => T): Promise<T>;
  /** Told of what is found, once for each text. */
  onFound?(counts: readonly GuardCount[]): void;
  /** Told of what is not let through, before the error of it is thrown. */
  onBlocked?(counts: readonly GuardCount[]): void;
};

/** What guards the texts of one call: it masks, counts or refuses by the rules of their places. */
export function makeCallGuard({ rules, restores = false, inTurn = doAtOnce, onFound, onBlocked }: Options) {
  const marks = makeMarks();
  const { note, found } = makeCounts(rules, onFound);
  const { valuesIn, valuesNow } = makeReader(rules, inTurn);
  const isOf = (place: GuardPlace, action: string) => (kind: GuardKind) => rules[place].get(kind) === action;
  const mask = makeMasker(marks);
  const block = (blocked: readonly Blocked[], isExact = false): never => {
    onBlocked?.(countsOf(blocked));
    throw refusal(blocked, isExact);
  };
  /** The texts as they may go on, by their values. */
  const treat = (texts: readonly GuardedText[], found: readonly Finding[][], { isCounted = true, isExact = false }) => {
    for (const { text } of texts) marks.avoid(text);
    const read = texts.map((one, at) => ({ ...one, values: found[at] ?? [] }));
    if (isCounted) for (const { place, values } of read) note(place, values);
    const blocked = read.flatMap(({ place, field, values }) =>
      values.flatMap(({ kind, start, end }) =>
        isOf(place, "block")(kind) || (isExact && isOf(place, "mask")(kind))
          ? [{ place, field, kind, start, end }]
          : [],
      ),
    );
    if (blocked.length > 0) block(blocked, isExact);
    return read.map((one) => mask(one, one.values, isOf(one.place, "mask")));
  };
  return {
    /** Whether anything is looked for at one of these places. */
    isOn: (...places: GuardPlace[]) => places.some((place) => rules[place].size > 0),
    /** Whether a place has a kind that is treated so. */
    has: (place: GuardPlace, ...actions: string[]) => [...rules[place].values()].some((one) => actions.includes(one)),
    /** The values of a text, each with what would be done with it. */
    async read(given: GuardedText): Promise<(Finding & { action: Exclude<GuardAction, "off"> })[]> {
      const [values = []] = await valuesIn([given]);
      return values.flatMap((finding) => {
        const action = rules[given.place].get(finding.kind);
        return action === undefined ? [] : [{ ...finding, action }];
      });
    },
    /**
     * The texts as they may go on, in their order. @throws AppError `compliance_blocked`, its details naming kinds and positions
     * (UTF-16 units), never values; `unavailable` if a guard fails, which lets nothing through. `isCounted`: not for texts that say
     * again what others have said. `isExact`: what would be masked is refused, since the texts are ids or addresses, which a mark would
     * make into others.
     */
    async take(texts: readonly GuardedText[], how: How = {}): Promise<string[]> {
      return treat(texts, await valuesIn(texts), how);
    },
    /** The same at once, for short texts. */
    takeAtOnce: (texts: readonly GuardedText[], how: How = {}): string[] => treat(texts, valuesNow(texts), how),
    /** Does a step of some milliseconds when it is its turn. */
    inTurn,
    /**
     * A text as the call logs keep it, of at most so many characters: nothing that is masked or refused at `place`, or in logs, stands
     * in it. It is not counted. `isGuarded`: it is what `take` or a stream has let through.
     */
    toLogged(text: string, place: GuardPlace, { most = text.length, isGuarded = false } = {}): string {
      const kinds = hiddenKinds(rules, place, isGuarded);
      if (kinds.length === 0) return text.slice(0, most);
      const near = text.slice(0, readUntil(text, 0, most));
      const [values = []] = safely(() => readAtOnce([{ text: near, kinds }]));
      const begun = values.filter(({ start }) => start < most);
      const kept = near.slice(0, Math.max(most, begun.at(-1)?.end ?? 0));
      return mask({ text: kept }, begun, () => true).slice(0, most);
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

/** Puts marks in the place of the values of a text. */
const makeMasker =
  (marks: ReturnType<typeof makeMarks>) =>
  (
    { text, isJson = false, isId = false }: Pick<GuardedText, "text" | "isJson" | "isId">,
    values: readonly Finding[],
    isMasked: (kind: GuardKind) => boolean,
  ): string => {
    let masked = "";
    let at = 0;
    const quotes = makeQuotes(isJson);
    for (const { kind, start, end } of values) {
      if (!isMasked(kind)) continue;
      const before = text.slice(at, start);
      const mark = marks.of(kind, text.slice(start, end));
      masked += before + (isId ? mark.slice(1, -1) : quotes.around(mark, before));
      at = end;
    }
    return masked + text.slice(at);
  };

/** Finds the values of texts by the rules of their places. */
function makeReader(rules: RulesOfPlaces, inTurn: NonNullable<Options["inTurn"]>) {
  const toRead = ({ text, place, label }: GuardedText) => ({ text, label, kinds: [...rules[place].keys()] });
  const valuesNow = (texts: readonly GuardedText[]) => safely(() => readAtOnce(texts.map(toRead)));
  return {
    valuesNow,
    /** Long texts are read in turns. */
    async valuesIn(texts: readonly GuardedText[]): Promise<Finding[][]> {
      const read = texts.filter(({ place }) => rules[place].size > 0);
      if (read.reduce((all, { text }) => all + text.length, 0) < SHORT) return valuesNow(texts);
      const reading = readTexts(texts.map(toRead));
      for (;;) {
        const step = await inTurn(() => safely(() => reading.next()));
        if (step.done) return step.value;
      }
    },
  };
}

/** The kinds that are hidden in logs of what was said at a place. In what was guarded, its own rules have hidden theirs. */
function hiddenKinds(rules: RulesOfPlaces, place: GuardPlace, isGuarded: boolean): GuardKind[] {
  const hiddenBy = (at: GuardPlace) =>
    [...rules[at]].flatMap(([kind, action]) => (action === "mask" || action === "block" ? [kind] : []));
  const own = hiddenBy(place);
  return isGuarded ? hiddenBy("log").filter((kind) => !own.includes(kind)) : [...new Set([...own, ...hiddenBy("log")])];
}

function countsOf(blocked: readonly Blocked[]): GuardCount[] {
  const counts: GuardCount[] = [];
  for (const { kind, place } of blocked) addCounts(counts, [{ kind, place, action: "block", count: 1 }]);
  return counts;
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

function refusal(blocked: readonly Blocked[], isExact: boolean): AppError {
  const kinds = [...new Set(blocked.map(({ kind }) => kind))];
  const [first] = blocked;
  const words = kinds.join(", ").replaceAll("_", " ");
  const isOfAnswer = first?.place === "output";
  const message = isOfAnswer
    ? `The answer held ${words}, which your guards do not let through. It was withheld.`
    : `Your guards do not let ${words} through. Nothing of it was sent on.${isExact ? ` ${first?.field} cannot be masked.` : ""}`;
  const details = { kinds, findings: blocked.slice(0, MAX_LISTED) };
  return new AppError("compliance_blocked", message, { ...(first && !isOfAnswer && { param: first.field }), details });
}

/** Does what finds values. A guard that fails lets nothing through. The cause is left out: its message could quote the text. */
function safely<T>(find: () => T): T {
  try {
    return find();
  } catch {
    const message = "The guards are not available right now; nothing was processed.";
    throw new AppError("unavailable", message, { retryable: true, retryAfterMs: 2_000 });
  }
}

const doAtOnce = async <T>(step: () => T): Promise<T> => step();

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
