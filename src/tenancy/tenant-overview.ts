import { z } from "zod";
import { defined } from "../lib/defined.ts";
import { idSchema } from "../lib/ids.ts";
import type { Page, PageQuery } from "../store/page.ts";
import type { Store } from "../store/store.ts";
import type { TenantRecord } from "../store/tenant-store.ts";

/** How far a tenant's records are counted. */
const COUNTED_TO = 10_000;
/** Organizations that one page of tenants looks at. */
const MAX_ORGANIZATIONS = 1_000;
const NANO = 1e9;

const count = z.number().int().min(0);
const counted = count.describe(`Counted up to ${COUNTED_TO}`);

/** A tenant as the operator sees it: its name and its use, nothing of what it keeps. */
export const tenantOverviewSchema = z.object({
  tenantId: idSchema("tenant"),
  name: z.string(),
  createdAt: z.iso.datetime(),
  rootTenantId: idSchema("tenant").optional().describe("The tenant that made it, whose limits it shares"),
  organizations: z.array(z.object({ organizationId: idSchema("organization"), name: z.string() })),
  month: z
    .object({ month: z.string(), requests: count, errors: count, inputTokens: count, outputTokens: count })
    .extend({ costUsd: z.number().min(0), limitUsd: z.number().min(0).optional().describe("Your budget for it") })
    .describe("Its model calls of this month, in UTC"),
  documents: counted,
  openJobs: counted,
  keys: counted.describe("Usable API keys"),
});
export type TenantOverview = z.output<typeof tenantOverviewSchema>;

type OverviewStore = Pick<Store, "tenants" | "organizations" | "usage" | "documents" | "jobs" | "apiKeys">;

/** A page of all tenants, the newest first; with a name the one that has it. */
export async function listTenants(
  store: OverviewStore,
  { name, ...page }: PageQuery & { name?: string | undefined },
): Promise<Page<TenantOverview>> {
  const { data, nextCursor } = name === undefined ? await store.tenants.list(page) : await findNamed(store, name);
  const ids = data.map(({ _id }) => _id);
  const month = new Date().toISOString().slice(0, 7);
  const [sums, organizations] = await Promise.all([
    store.usage.sumsOf(ids, { from: `${month}-01`, to: `${month}-31` }),
    store.organizations.namesOf(ids, MAX_ORGANIZATIONS),
  ]);
  const toOverview = async (tenant: TenantRecord): Promise<TenantOverview> => {
    const { _id: tenantId, createdAt, rootTenantId, monthlyBudgetNanoUsd: limit } = tenant;
    const [documents, openJobs, keys] = await Promise.all([
      store.documents.countAll(tenantId, COUNTED_TO),
      store.jobs.countOpen(tenantId, COUNTED_TO),
      store.apiKeys.count(tenantId, COUNTED_TO),
    ]);
    const { costNanoUsd = 0, ...calls } = sums.get(tenantId) ?? {
      requests: 0,
      errors: 0,
      inputTokens: 0,
      outputTokens: 0,
    };
    const limitUsd = limit === undefined ? undefined : limit / NANO;
    const inOrganizations = organizations.filter(({ tenantIds }) => tenantIds.includes(tenantId));
    return {
      tenantId,
      name: tenant.name,
      createdAt: createdAt.toISOString(),
      ...defined({ rootTenantId }),
      organizations: inOrganizations.map((one) => ({ organizationId: one.organizationId, name: one.name })),
      month: { month, ...calls, costUsd: costNanoUsd / NANO, ...defined({ limitUsd }) },
      documents,
      openJobs,
      keys,
    };
  };
  return { data: await Promise.all(data.map(toOverview)), nextCursor };
}

async function findNamed({ tenants }: OverviewStore, name: string): Promise<Page<TenantRecord>> {
  const found = await tenants.findByName(name);
  return { data: found === null ? [] : [found], nextCursor: null };
}
