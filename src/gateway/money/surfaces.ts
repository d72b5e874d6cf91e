import { makeFirstNames } from "./first-names.ts";

const MAX_CHARACTERS = 64;
/** Surfaces that one tenant may name in a day (UTC) in one process: each is a row of its usage for every model. */
const MAX_SURFACES = 100;
/** Tenants whose surfaces a process remembers. */
const MAX_TENANTS = 2_000;
const DAY_MS = 86_400_000;

/** The surfaces that tenants name for their calls, few enough to be rows of usage. */
export function makeSurfaces() {
  const keep = makeFirstNames({ names: MAX_SURFACES, tenants: MAX_TENANTS, periodMs: DAY_MS });
  /** The surface by which a call is counted that names this one; null for a text that names none. */
  return (tenantId: string, text: string): string | null => {
    const surface = toSurface(text);
    return surface === "" ? null : keep(tenantId, surface, Date.now());
  };
}

/** Any text as the name of a row of usage. */
function toSurface(text: string): string {
  return text
    .slice(0, 4 * MAX_CHARACTERS)
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .replace(/[^\w.:/-]+/g, "-")
    .slice(0, MAX_CHARACTERS)
    .replace(/^-+|-+$/g, "");
}
