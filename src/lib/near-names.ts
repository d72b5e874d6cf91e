import leven from "leven";

/** Most letters that differ between two names of which one was meant for the other. */
const MAX_DISTANCE = 2;
/** Shorter names differ by two letters from much else. */
const LONG_NAME = 6;
/** Longer names are not compared. */
const MAX_LENGTH = 64;

/** A name without what people write differently: case, `_`, `-`, and the `s` of a plural. */
const plain = (name: string) => name.toLowerCase().replace(/[_-]/g, "").replace(/s$/, "");

/** Whether two names are one in different spellings, as `max_tokens` and `maxToken`. */
export const isSameName = (name: string, other: string) => plain(name) === plain(other);

/** Whether a name was probably meant for another one. */
export function isNearName(name: string, other: string): boolean {
  if (name.length > MAX_LENGTH) return false;
  if (isSameName(name, other)) return true;
  const [a, b] = [plain(name), plain(other)];
  const most = Math.min(a.length, b.length) < LONG_NAME ? 1 : MAX_DISTANCE;
  return leven(a, b, { maxDistance: most + 1 }) <= most;
}

/** Part of the letters of a name that another one may differ by to be near. */
const NEAR = 0.5;
/** Names that are given for one at most. */
const MAX_NAMES = 3;

/** The names of a list that may have been meant by one: the nearest, and those that hold it whole, as `linkOrigins` and `allowedOrigins` hold `origins`. */
export function nearNames(name: string, known: readonly string[]): string[] {
  if (name.length > MAX_LENGTH) return [];
  const wanted = plain(name);
  const holds = (other: string) => plain(other).includes(wanted) || wanted.includes(plain(other)); // `limit` for `limitUsd`
  const distance = (other: string) => {
    const one = plain(other);
    return (leven(wanted, one) / Math.max(wanted.length, one.length, 1)) * (holds(other) ? 0.5 : 1);
  };
  const near = known.map((other) => ({ other, by: distance(other) })).filter(({ by }) => by <= NEAR);
  const [nearest, ...others] = near.sort((a, b) => a.by - b.by).map(({ other }) => other);
  if (nearest === undefined) return [];
  const isAnother = (other: string) => holds(other) && !isSameName(other, nearest);
  return [nearest, ...others.filter(isAnother)].slice(0, MAX_NAMES);
}
