import type { Metadata } from "./schemas.ts";

/** Metadata in the form that is indexed and searched: `key=value`, the value in JSON so that `1` and `"1"` differ. */
export function tagsOf(metadata: Metadata): string[] {
  return Object.entries(metadata).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
}
