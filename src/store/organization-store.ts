import type { Db, Filter } from "mongodb";
import { defineCollection } from "./collection.ts";
import type { Role } from "./key-store.ts";
import { updateIf } from "./writes.ts";

/** A person or service, identified by its tenant and its name there: tenants name their subjects as they like. */
type MemberId = { tenantId: string; subject: string };

type Member = MemberId & { role: Role };

export type OrganizationTenant = {
  tenantId: string;
  name: string;
  /** Set where the organization made the tenant: the name it was made under, and the id of its first key. */
  madeAs?: string;
  firstKeyId?: string;
};

/** Several tenants under one roof. It belongs to no tenant: its members say who may see it. */
export type OrganizationRecord = {
  _id: string;
  name: string;
  /** The tenant that founded it. */
  founderTenantId: string;
  createdAt: Date;
  tenants: OrganizationTenant[];
  members: Member[];
};

export const organizationCollection = defineCollection<OrganizationRecord>({
  name: "organizations",
  indexes: [
    { name: "founder", key: { founderTenantId: 1 } },
    { name: "tenants", key: { "tenants.tenantId": 1 } },
  ],
});

/** Which members of an organization are meant. */
type MemberChoice = MemberId & { roles: readonly Role[] };

/** Every function but `namesOf` acts on behalf of a member: an organization of others does not exist for it. */
export function makeOrganizationStore(db: Db) {
  const organizations = db.collection<OrganizationRecord>(organizationCollection.name);
  return {
    async insert(organization: OrganizationRecord): Promise<void> {
      await organizations.insertOne(organization);
    },
    /** An organization in which the member has one of the roles; null for any other. */
    find: (member: MemberChoice, organizationId: string): Promise<OrganizationRecord | null> =>
      organizations.findOne({ _id: organizationId, ...ofMember(member) }),
    /** An organization that holds the tenant, and in which the member has one of the roles. */
    findHolding: (member: MemberChoice, tenantId: string): Promise<OrganizationRecord | null> =>
      organizations.findOne({ "tenants.tenantId": tenantId, ...ofMember(member) }),
    /** Names of organizations that hold any of these tenants, for the operator; at most `limit`. */
    async namesOf(tenantIds: readonly string[], limit: number) {
      const holding = organizations.find({ "tenants.tenantId": { $in: [...tenantIds] } });
      const found = await holding
        .project<Pick<OrganizationRecord, "_id" | "name" | "tenants">>({ name: 1, "tenants.tenantId": 1 })
        .limit(limit)
        .toArray();
      return found.map(({ _id, name, tenants }) => ({
        organizationId: _id,
        name,
        tenantIds: tenants.map(({ tenantId }) => tenantId),
      }));
    },
    /** How many a tenant has founded; counts no further than `limit`. */
    countFounded: (tenantId: string, limit: number) =>
      organizations.countDocuments({ founderTenantId: tenantId }, { limit }),
    /** False when nothing was added: it is there, another was made under its name, or there are `limit` of them. */
    addTenant(
      member: MemberChoice,
      organizationId: string,
      { tenant, member: newMember, limit }: { tenant: OrganizationTenant; member?: Member; limit: number },
    ) {
      return updateIf(
        organizations,
        {
          _id: organizationId,
          ...ofMember(member),
          [`tenants.${limit - 1}`]: { $exists: false },
          "tenants.tenantId": { $ne: tenant.tenantId },
          ...(tenant.madeAs === undefined ? {} : { "tenants.madeAs": { $ne: tenant.madeAs } }),
        },
        { $push: { tenants: tenant, ...(newMember === undefined ? {} : { members: newMember }) } },
      );
    },
  };
}

function ofMember({ tenantId, subject, roles }: MemberChoice): Filter<OrganizationRecord> {
  return { members: { $elemMatch: { tenantId, subject, role: { $in: [...roles] } } } };
}
