import { z } from "zod";
import { defined } from "../lib/defined.ts";
import { AppError, notFound } from "../lib/errors.ts";
import { idSchema, newId } from "../lib/ids.ts";
import type { Logger } from "../observe/logger.ts";
import { type Role, roles } from "../store/key-store.ts";
import type { OrganizationRecord, OrganizationTenant } from "../store/organization-store.ts";
import type { Store } from "../store/store.ts";
import { unlessDuplicate } from "../store/writes.ts";
import type { Quotas } from "./quotas.ts";
import { type Caller, endOfMadeKey } from "./roles.ts";
import type { Tenancy } from "./tenancy.ts";

const MAX_TENANTS = 100;

/** Roles in an organization that may change it. */
const governing = ["owner", "admin"] as const;

const name = z.string().trim().min(1).max(100);
const organizationId = idSchema("organization");

export const createOrganizationSchema = z.strictObject({ name });
export const getOrganizationSchema = z.strictObject({ organizationId });
export const addTenantSchema = z
  .strictObject({
    organizationId,
    tenantId: idSchema("tenant")
      .optional()
      .describe(
        "An existing tenant: your own, or one of another organization that you govern; required without `name`",
      ),
    name: name.optional().describe("Creates a tenant of this name; its first API key is shown once"),
  })
  .refine((given) => (given.tenantId === undefined) !== (given.name === undefined), {
    path: ["tenantId"],
    message: "give either tenantId or name",
  });

/** An organization, as its members see it. */
export const organizationViewSchema = z.object({
  organizationId,
  name: z.string(),
  createdAt: z.iso.datetime(),
  tenants: z.array(z.object({ tenantId: idSchema("tenant"), name: z.string() })),
  members: z.array(z.object({ subject: z.string(), role: z.enum(roles), tenantId: idSchema("tenant") })),
});
export const addedTenantSchema = organizationViewSchema.extend({
  tenantId: idSchema("tenant"),
  apiKey: z.string().optional().describe("The first key of a tenant that was made just now"),
});

type Deps = {
  store: Pick<Store, "organizations" | "tenants">;
  tenancy: Pick<Tenancy, "createKey">;
  quotas: Pick<Quotas, "check">;
  logger: Logger;
};

/** Organizations. A member is identified by tenant and subject: a subject alone proves nothing, each tenant names its own. */
export function makeOrganizations(deps: Deps) {
  const { store, logger } = deps;
  return {
    /** Founds an organization: the caller's tenant joins it, and its subject becomes the owner. @throws AppError `quota_exceeded`. */
    async create({ tenantId, subject }: Caller, given: z.output<typeof createOrganizationSchema>) {
      const tenant = await store.tenants.find(tenantId);
      if (!tenant) throw notFound("tenant");
      await deps.quotas.check(tenantId, "organizations");
      const organization: OrganizationRecord = {
        _id: newId("organization"),
        name: given.name,
        founderTenantId: tenantId,
        createdAt: new Date(),
        tenants: [{ tenantId, name: tenant.name }],
        members: [{ tenantId, subject, role: "owner" }],
      };
      await store.organizations.insert(organization);
      return toView(organization);
    },
    /** @throws AppError `not_found`, also for an organization that the caller is not a member of. */
    get: async (caller: Caller, id: string) => toView(await findFor(deps, caller, id, roles)),
    /**
     * Adds a tenant, or creates one. A repeat changes nothing and returns no key; `apiKey` is only there the first time.
     * @throws AppError `not_found` for what the caller does not administer, `wrong_state` at a limit and to a made tenant.
     */
    async addTenant(caller: Caller, given: z.output<typeof addTenantSchema>) {
      const organization = await findGoverned(deps, caller, given.organizationId);
      const added =
        given.name === undefined
          ? await addExisting(deps, caller, organization, given.tenantId ?? "")
          : await addNew(deps, caller, organization, given.name);
      logger.info({ organizationId: organization._id, tenantId: added.tenantId }, "a tenant is in the organization");
      return { ...toView(await findGoverned(deps, caller, organization._id)), ...added };
    },
  };
}

/** An organization in which the caller has one of these roles. */
async function findFor({ store }: Deps, { tenantId, subject }: Caller, id: string, among: readonly Role[]) {
  const organization = await store.organizations.find({ tenantId, subject, roles: among }, id);
  if (!organization) throw notFound("organization");
  return organization;
}

/** You can add your own tenant, or one of another organization that you administer. */
async function addExisting(deps: Deps, caller: Caller, organization: OrganizationRecord, tenantId: string) {
  if (organization.tenants.some((tenant) => tenant.tenantId === tenantId)) return { tenantId };
  const known =
    tenantId === caller.tenantId ? await deps.store.tenants.find(tenantId) : await findHeld(deps, caller, tenantId);
  if (!known) throw notFound("tenant");
  await push(deps, caller, organization, { tenant: { tenantId, name: known.name } });
  return { tenantId };
}

const findGoverned = (deps: Deps, caller: Caller, id: string) => findFor(deps, caller, id, governing);

async function findHeld({ store }: Deps, caller: Caller, tenantId: string) {
  const holding = await store.organizations.findHolding(governorOf(caller), tenantId);
  return holding?.tenants.find((tenant) => tenant.tenantId === tenantId);
}

const governorOf = ({ tenantId, subject }: Caller) => ({ tenantId, subject, roles: governing });

/**
 * Makes a tenant and its first key. The organization's entry comes first and holds both ids, so that a repeat after a crash
 * finishes what was begun, and of two at the same time one makes the key.
 */
async function addNew(deps: Deps, caller: Caller, organization: OrganizationRecord, madeAs: string) {
  if (caller.rootTenantId !== undefined) {
    // So the tenants of a root are bounded in number, and each one's maker is its root.
    throw new AppError("wrong_state", "Your tenant was made by another tenant; ask that one to make tenants.");
  }
  const { tenantId, firstKeyId } = await reserveTenant(deps, caller, organization, madeAs);
  const name = `${organization._id}/${madeAs}`; // the id keeps clear of the names that the operator gives
  const tenant = { _id: tenantId, name, createdAt: new Date(), rootTenantId: caller.tenantId };
  await unlessDuplicate(deps.store.tenants.insert(tenant));
  const given = { tenantId, keyId: firstKeyId, role: "owner", subject: caller.subject, name: "first key" } as const;
  const end = defined({ expiresAt: endOfMadeKey(caller) });
  const made = await unlessDuplicate(deps.tenancy.createKey({ ...given, ...end }));
  return { tenantId, ...defined({ apiKey: made?.key }) };
}

async function reserveTenant(deps: Deps, caller: Caller, organization: OrganizationRecord, madeAs: string) {
  const existing = findMade(organization, madeAs);
  if (existing) return existing;
  const ids = { tenantId: newId("tenant"), firstKeyId: newId("apiKey") };
  await push(deps, caller, organization, {
    tenant: { ...ids, name: madeAs, madeAs },
    member: { tenantId: ids.tenantId, subject: caller.subject, role: "member" },
  });
  // Another call may have been first; the stored entry counts.
  return findMade(await findGoverned(deps, caller, organization._id), madeAs) ?? ids;
}

function findMade({ tenants }: OrganizationRecord, madeAs: string) {
  const found = tenants.find((tenant) => tenant.madeAs === madeAs);
  return found?.firstKeyId === undefined ? undefined : { tenantId: found.tenantId, firstKeyId: found.firstKeyId };
}

type Added = { tenant: OrganizationTenant; member?: OrganizationRecord["members"][number] };

async function push(deps: Deps, caller: Caller, { _id }: OrganizationRecord, added: Added): Promise<void> {
  const bounded = { ...added, limit: MAX_TENANTS };
  if (await deps.store.organizations.addTenant(governorOf(caller), _id, bounded)) return;
  const now = await findGoverned(deps, caller, _id);
  const { madeAs, tenantId: wanted } = added.tenant;
  const isPresent = now.tenants.some(
    (one) => one.tenantId === wanted || (madeAs !== undefined && one.madeAs === madeAs),
  );
  if (!isPresent) throw new AppError("wrong_state", `An organization holds ${MAX_TENANTS} tenants at most.`);
}

function toView({ _id, name: title, createdAt, tenants, members }: OrganizationRecord) {
  return {
    organizationId: _id,
    name: title,
    createdAt: createdAt.toISOString(),
    tenants: tenants.map(({ tenantId, name: tenantName }) => ({ tenantId, name: tenantName })),
    members: members.map(({ subject, role, tenantId }) => ({ subject, role, tenantId })),
  };
}
