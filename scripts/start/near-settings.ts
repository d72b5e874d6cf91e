import leven from "leven";
import { settings } from "../../src/config/config.ts";
import { fileSettingOf } from "../../src/config/secret-files.ts";

/** Most letters that differ between a name and the setting that it was meant to be. */
const MAX_DISTANCE = 2;
/** Shorter names differ by two letters from much else. */
const LONG_NAME = 6;

/** A sentence for each variable of the environment that is no setting but nearly has the name of one. */
export function warnOfNearSettings(env: Record<string, string | undefined>): string[] {
  const known = Object.keys(settings).flatMap((name) => [name, fileSettingOf(name) ?? name]);
  return Object.keys(env).flatMap((name) => {
    if (known.includes(name) || env[name] === "") return [];
    const near = known.find((other) => {
      const most = Math.min(name.length, other.length) < LONG_NAME ? 1 : MAX_DISTANCE;
      return leven(name, other, { maxDistance: most + 1 }) <= most && env[other] === undefined;
    });
    return near === undefined ? [] : [`${name} is no setting. Did you mean ${near}?`];
  });
}
