import { z } from "zod";
import { type KeyProvider, keyedProviders, keyProviders } from "../gateway/providers/registry.ts";
import { setting, url } from "./setting-forms.ts";

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
    const { name, baseUrl } = keyedProviders[id];
    return [[apiKeyName(id), toKey(name)] as const, [baseUrlName(id), toUrl(name, baseUrl)] as const];
  });
  return Object.fromEntries(all) as { [Name in `${SettingPrefix}_API_KEY`]: ReturnType<typeof toKey> } & {
    [Name in `${SettingPrefix}_BASE_URL`]: ReturnType<typeof toUrl>;
  };
}
