import { Command, InvalidArgumentError, Option } from "commander";
import { AppError, ConfigError } from "../src/lib/errors.ts";
import type { Platform } from "../src/platform.ts";
import { type Role, roles } from "../src/store/key-store.ts";
import { isTokenSubject } from "../src/tenancy/access-tokens.ts";
import { toApiKeyView } from "../src/tenancy/api-keys.ts";
import { type Api, ApiRejection, keyOption, openApi, urlOption } from "./cli/api.ts";
import { withStore } from "./cli/open-store.ts";

const LISTED = 200;

type Target = { tenant?: string; url: string; key?: string };
type InTenant = { platform: Platform; tenantId: string; tenant: string; isNew: boolean };

/**
 * `npm run keys`: makes, lists and revokes API keys, sets budgets, and rotates the master key. With `--tenant` it works on
 * the store, as the operator; without, it asks the API for the tenant of `--key`. Exit code 0, 1 for a refusal, 2 for wrong
 * settings or arguments.
 */
const program = new Command("keys");
const tenantOption = () => new Option("--tenant <name>", "a tenant of the store, instead of that of --key");

/** A command on keys: on the store where a tenant is named, else through the API. */
async function onKeys<T>(
  { tenant, url, key }: Target,
  work: { inStore(opened: InTenant): Promise<T>; overHttp(api: Api): Promise<T>; isNewTenantFine?: boolean },
): Promise<T> {
  if (tenant !== undefined) {
    return withStore("keys", async (platform) => {
      const known = await platform.store.tenants.findByName(tenant);
      const find = work.isNewTenantFine ? platform.tenancy.ensureTenant : platform.tenancy.findTenant;
      return work.inStore({ platform, tenant, tenantId: await find(tenant), isNew: known === null });
    });
  }
  if (key !== undefined) return work.overHttp(openApi({ url, key }));
  throw new ConfigError("Name a tenant of the store with --tenant, or give an owner's key of the API with --key.");
}

program
  .command("create")
  .description("make a key and print it, this once")
  .addOption(tenantOption().default(undefined, "none; one that is new is made"))
  .addOption(urlOption())
  .addOption(keyOption())
  .requiredOption("--subject <who>", "who acts with the key, as ana@acme.io")
  .addOption(new Option("--role <role>").choices([...roles]).default("member"))
  .action(async (options: Target & { subject: string; role: Role }) => {
    const { subject, role } = options;
    const made = await onKeys(options, {
      isNewTenantFine: true,
      async inStore({ platform, tenantId, tenant, isNew }) {
        if (isTokenSubject(subject)) throw new ConfigError("A key's subject cannot begin with `token:`.");
        const { key, record } = await platform.tenancy.createKey({ tenantId, role, subject });
        const made = isNew ? `\nThere was no tenant ${tenant}: it was made just now.` : "";
        return { key, about: `${record._id}: ${role} ${subject} of tenant ${tenant} (${tenantId})${made}` };
      },
      async overHttp(api) {
        const { key, keyId } = await api("POST", "/keys", { role, subject });
        return { key, about: `${keyId}: ${role} ${subject}` };
      },
    });
    console.log(`${made.key}\n\n${made.about}\nThe key is stored as a hash only: keep it now.`);
  });

program
  .command("list")
  .description("list the keys of a tenant, newest first")
  .addOption(tenantOption())
  .addOption(urlOption())
  .addOption(keyOption())
  .action(async (options: Target) => {
    const keys = await onKeys<unknown>(options, {
      inStore: async ({ platform, tenantId }) =>
        (await platform.tenancy.listKeys(tenantId, { limit: LISTED })).data.map(toApiKeyView),
      overHttp: async (api) => (await api("GET", `/keys?limit=${LISTED}`)).data,
    });
    const listed = keys as { keyId: string; role: string; subject: string; createdAt: string }[]; // of toApiKeyView
    for (const { keyId, role, subject, createdAt } of listed) {
      console.log(`${keyId}  ${role.padEnd(6)}  ${subject}  made ${createdAt}`);
    }
    if (listed.length === 0) console.log("no keys");
  });

program
  .command("revoke")
  .description("revoke a key by its id; it stops working within 5 s everywhere")
  .argument("<keyId>")
  .addOption(tenantOption())
  .addOption(urlOption())
  .addOption(keyOption())
  .action(async (keyId: string, options: Target) => {
    await onKeys<unknown>(options, {
      inStore: ({ platform, tenantId }) => platform.tenancy.revokeKey(tenantId, keyId),
      overHttp: (api) => api("DELETE", `/keys/${encodeURIComponent(keyId)}`),
    });
    console.log(`${keyId} is revoked`);
  });

program
  .command("budget")
  .description("set what a tenant's model calls may cost in a month, in USD; `none` lifts it")
  .argument("<usd>", "an amount, or none", (text) => {
    const usd = text === "none" ? null : Number(text);
    if (usd === null || (Number.isFinite(usd) && usd >= 0)) return usd;
    throw new InvalidArgumentError("give an amount in USD, or none");
  })
  .requiredOption("--tenant <name>", "name of the tenant")
  .action((usd: number | null, options: { tenant: string }) =>
    withStore("keys", async ({ tenancy, gateway }) => {
      const tenantId = await tenancy.findTenant(options.tenant);
      await gateway.setBudget(tenantId, usd);
      const view = await gateway.budget(tenantId);
      console.log(view ? `${view.leftUsd} of ${view.limitUsd} USD are left in ${view.month}` : "no budget is set");
    }),
  );

program
  .command("rotate-master")
  .description("wrap every tenant's data key with the first key of MASTER_KEY")
  .action(() =>
    withStore("keys", async ({ providerKeys }) => {
      const { rewrapped, unreadable } = await providerKeys.rewrapAll();
      console.log(`${rewrapped} data keys are wrapped again`);
      if (unreadable > 0) throw new Error(`${unreadable} data keys were wrapped by none of the keys of MASTER_KEY`);
    }),
  );

try {
  await program.parseAsync();
} catch (error) {
  const isExpected = error instanceof AppError || error instanceof ConfigError || error instanceof ApiRejection;
  console.error(isExpected ? error.message : error);
  process.exit(error instanceof ConfigError ? 2 : 1);
}
