import { Command, InvalidArgumentError, Option } from "commander";
import { ConfigError, loadConfig } from "../src/config.ts";
import { AppError } from "../src/errors.ts";
import { openPlatform, type Platform } from "../src/platform.ts";
import { type Role, roles } from "../src/tenancy/roles.ts";

const LISTED = 200;

/** Opens the platform for one command and closes it after. */
async function withPlatform(command: (platform: Platform) => Promise<void>): Promise<void> {
  const platform = await openPlatform({ ...loadConfig(), logLevel: "error" }, { name: "keys" });
  try {
    await command(platform);
  } finally {
    await platform.close();
  }
}

/** `npm run keys`: makes, lists and revokes API keys, and rotates the master key. Exit code 0, 1 for a refusal, 2 for wrong settings. */
const program = new Command("keys");

program
  .command("create")
  .description("make a key and print it, this once")
  .requiredOption("--tenant <name>", "name of the tenant; made when it is new")
  .requiredOption("--subject <who>", "who acts with the key, as ana@acme.io")
  .addOption(new Option("--role <role>").choices([...roles]).default("member"))
  .action((options: { tenant: string; subject: string; role: Role }) =>
    withPlatform(async ({ tenancy }) => {
      const tenantId = await tenancy.ensureTenant(options.tenant);
      const { key, record } = await tenancy.createKey({ tenantId, role: options.role, subject: options.subject });
      console.log(
        `${key}\n\n${record._id}: ${options.role} ${options.subject} of tenant ${options.tenant} (${tenantId})`,
      );
      console.log("The key is stored as a hash only: keep it now.");
    }),
  );

program
  .command("list")
  .description("list the keys of a tenant, newest first")
  .requiredOption("--tenant <name>", "name of the tenant")
  .action((options: { tenant: string }) =>
    withPlatform(async ({ tenancy }) => {
      const tenantId = await tenancy.findTenant(options.tenant);
      const { data } = await tenancy.listKeys(tenantId, { limit: LISTED });
      for (const key of data) {
        console.log(`${key._id}  ${key.role.padEnd(6)}  ${key.subject}  made ${key.createdAt.toISOString()}`);
      }
      if (data.length === 0) console.log("no keys");
    }),
  );

program
  .command("revoke")
  .description("revoke a key by its id; it stops working within 5 s everywhere")
  .argument("<keyId>")
  .requiredOption("--tenant <name>", "name of the tenant")
  .action((keyId: string, options: { tenant: string }) =>
    withPlatform(async ({ tenancy }) => {
      await tenancy.revokeKey(await tenancy.findTenant(options.tenant), keyId);
      console.log(`${keyId} is revoked`);
    }),
  );

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
    withPlatform(async ({ tenancy, gateway }) => {
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
    withPlatform(async ({ providerKeys }) => {
      const { rewrapped, unreadable } = await providerKeys.rewrapAll();
      console.log(`${rewrapped} data keys are wrapped anew`);
      if (unreadable > 0) throw new Error(`${unreadable} data keys were wrapped by none of the keys of MASTER_KEY`);
    }),
  );

try {
  await program.parseAsync();
} catch (error) {
  console.error(error instanceof AppError || error instanceof ConfigError ? error.message : error);
  process.exit(error instanceof ConfigError ? 2 : 1);
}
