import type { TestPlatform } from "./start-platform.ts";

/** The id of the tenant whose keys a test platform hands out first. */
export async function tenantOf({ platform, keys }: TestPlatform): Promise<string> {
  const caller = await platform.tenancy.authenticate(keys.owner);
  if (!caller) throw new Error("the owner's key is not known");
  return caller.tenantId;
}

/** Who asks for what a tenant has, by a key without limits. */
export const viewerOf = (tenantId: string) => ({ tenantId, keyId: "", collections: undefined });
