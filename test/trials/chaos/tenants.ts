import { setTimeout as delay } from "node:timers/promises";
import { loadConfig } from "../../../src/config/config.ts";
import { openPlatform } from "../../../src/platform.ts";
import { guardPolicySchema } from "../../../src/tenancy/guard-schemas.ts";
import { policyOf } from "./canaries.ts";
import { type Meetings, makeTenantClient } from "./client.ts";
import { composedBody, innerBody } from "./composed.ts";
import type { ExternalWorld } from "./external-world.ts";
import type { Fleet } from "./fleet.ts";
import { agentBody, buyerBody, type JobWorkName, type Tenant, workflowBody } from "./work.ts";

/** Until then a policy holds in every process, in ms. */
const POLICY_HOLDS_MS = 5_000;

/** Makes the tenants, with what their work needs. */
export async function openTenants(options: {
  tenants: number;
  works: readonly JobWorkName[];
  env: Record<string, string>;
  fleet: Fleet;
  external: ExternalWorld;
  meetings: Meetings;
  giveUp: AbortSignal;
}): Promise<Tenant[]> {
  const { env, fleet, external, meetings, giveUp, works } = options;
  const platform = await openPlatform(loadConfig({ ...env, LOG_LEVEL: "silent" }), { name: "chaos" });
  try {
    return await Promise.all(
      Array.from({ length: options.tenants }, async (_, index) => {
        const tenantId = await platform.tenancy.ensureTenant(`tenant-${index + 1}`);
        const { key: apiKey } = await platform.tenancy.createKey({ tenantId, role: "owner", subject: "chaos" });
        const client = makeTenantClient({ apiKey, nextUrl: fleet.nextUrl, meetings, giveUp });
        const make = async (path: string, key: string, body: object): Promise<string> => {
          const made = await client.settle(path, { key, body });
          const { agentId, workflowId = agentId } = Object(made.body) as { agentId?: string; workflowId?: string };
          if (workflowId === undefined) throw new Error(`${key} was not made: ${JSON.stringify(made)}`);
          return workflowId;
        };
        const agentId = await make("/agents", "clerk", agentBody(external.host));
        const buyerId = await make("/agents", "buyer", buyerBody(external.host));
        const workflowId = await make("/workflows", "order", workflowBody(external.origin));
        const policy = policyOf(index + 1);
        if (policy) await platform.guards.put(tenantId, guardPolicySchema.parse(policy));
        const tenant = { number: index + 1, tenantId, agentId, buyerId, workflowId, composedId: "", client };
        if (!works.includes("composed")) return tenant;
        const innerId = await make("/workflows", "inner", innerBody(external.origin));
        const composed = composedBody(external.origin, { agentId, innerId });
        return { ...tenant, composedId: await make("/workflows", "composed", composed) };
      }),
    );
  } finally {
    await delay(POLICY_HOLDS_MS);
    await platform.close();
  }
}
