import type { Db, Filter } from "mongodb";
import { defineCollection } from "./collection.ts";
import type { Role } from "./key-store.ts";

/** A person or service, told by its tenant and its name there: tenants name their subjects as they like. */
export type MemberId = { tenantId: string; subject: string };

export type OrganizationTenant = {
  tenantId: string;
  name: string;
  /** Set where the organization made the tenant: the name it was made under, and the id of its first key. */
  madeAs?: string;
  firstKeyId?: string;
};

/** Several tenants under one roof. It belongs to no tenant: its members say who may see it. */
export type OrganizationDocument = {
  _id: string;
  name: string;
  /** The tenant that founded it. */
  founderTenantId: string;
  createdAt: Date;
  tenants: OrganizationTenant[];
  members: (MemberId & { role: Role })[];
};

export const organizationCollection = defineCollection<OrganizationDocument>({
  name: "organizations",
  indexes: [
    { name: "founder", key: { founderTenantId: 1 } },
    { name: "tenants", key: { "tenants.tenantId": 1 } },
  ],
});

/** Which members of an organization are meant. */
export type MemberChoice = MemberId & { roles: readonly Role[] };

/** Every function takes the member on whose behalf it is asked: an organization of others is not there for it. */
export type OrganizationStore = {
  insert(organization: OrganizationDocument): Promise<void>;
  /** An organization in which the member has one of the roles; null for any other. */
  find(member: MemberChoice, organizationId: string): Promise<OrganizationDocument | null>;
  /** An organization that holds the tenant, and in which the member has one of the roles. */
  findHolding(member: MemberChoice, tenantId: string): Promise<OrganizationDocument | null>;
  countFounded(tenantId: string): Promise<number>;
  /**
   * Adds a tenant, with the member that comes with it, unless it is there, another one was made under its name, or there are
   * `limit` of them. False when nothing was added.
   */
  addTenant(
    member: MemberChoice,
    organizationId: string,
    added: { tenant: OrganizationTenant; member?: MemberId & { role: Role }; limit: number },
  ): Promise<boolean>;
};

export function makeOrganizationStore(db: Db): OrganizationStore {
  const organizations = db.collection<OrganizationDocument>(organizationCollection.name);
  const ofMember = ({ tenantId, subject, roles }: MemberChoice): Filter<OrganizationDocument> => ({
    members: { $elemMatch: { tenantId, subject, role: { $in: [...roles] } } },
  });
  return {
    insert: async (organization) => void (await organizations.insertOne(organization)),
    find: (member, organizationId) => organizations.findOne({ _id: organizationId, ...ofMember(member) }),
    findHolding: (member, tenantId) => organizations.findOne({ "tenants.tenantId": tenantId, ...ofMember(member) }),
    countFounded: (tenantId) => organizations.countDocuments({ founderTenantId: tenantId }),
    async addTenant(member, organizationId, { tenant, member: newMember, limit }) {
      const result = await organizations.updateOne(
        {
          _id: organizationId,
          ...ofMember(member),
          [`tenants.${limit - 1}`]: { $exists: false },
          "tenants.tenantId": { $ne: tenant.tenantId },
          ...(tenant.madeAs === undefined ? {} : { "tenants.madeAs": { $ne: tenant.madeAs } }),
        },
        { $push: { tenants: tenant, ...(newMember === undefined ? {} : { members: newMember }) } },
      );
      return result.modifiedCount === 1;
    },
  };
}
