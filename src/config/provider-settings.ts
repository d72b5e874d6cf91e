import { z } from "zod";
import { setting, url } from "./setting-forms.ts";

/**
 * The providers that take customers' keys, by id: how each writes its name, and the address of its API by default. How one is
 * asked is in its folder of src/gateway/providers.
 */
const keyed = {
  openai: { name: "OpenAI", baseUrl: "https://api.openai.com/v1" },
  anthropic: { name: "Anthropic", baseUrl: "https://api.anthropic.com" },
} as const;

export type KeyProvider = keyof typeof keyed;
export const keyProviders = Object.keys(keyed) as KeyProvider[]; // the literal above has no other keys

/** A record with the result of `make` for each provider that takes customers' keys. */
export function ofKeyProviders<T>(make: (id: KeyProvider) => T): Record<KeyProvider, T> {
  // `fromEntries` forgets which keys there are.
  return Object.fromEntries(keyProviders.map((id) => [id, make(id)])) as Record<KeyProvider, T>;
}

type SettingPrefix = Uppercase<KeyProvider>;
const prefixOf = (id: KeyProvider) => id.toUpperCase() as SettingPrefix; // the same operation on the type
export const apiKeyName = (id: KeyProvider) => `${prefixOf(id)}_API_KEY` as const;
export const baseUrlName = (id: KeyProvider) => `${prefixOf(id)}_BASE_URL` as const;

/** The two settings of each provider that takes customers' keys, named after its id. */
export function providerSettings() {
  const toKey = (name: string) =>
    setting(z.string().min(1).optional(), `The platform's key for ${name}, for tenants without one`);
  const toUrl = (name: string, baseUrl: string) => setting(url.default(baseUrl), `${name}'s API`);
  const all = keyProviders.flatMap((id) => {
    const { name, baseUrl } = keyed[id];
    return [[apiKeyName(id), toKey(name)] as const, [baseUrlName(id), toUrl(name, baseUrl)] as const];
  });
  return Object.fromEntries(all) as { [Name in `${SettingPrefix}_API_KEY`]: ReturnType<typeof toKey> } & {
    [Name in `${SettingPrefix}_BASE_URL`]: ReturnType<typeof toUrl>;
  };
}
