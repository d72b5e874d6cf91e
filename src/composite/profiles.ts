import type { GuardKind } from "./guards/guard.ts";

/** The industry profiles, in the order of the documentation. */
export const profileIds = ["healthcare", "financial", "coding", "legal", "content", "support"] as const;
export type ProfileId = (typeof profileIds)[number];

/** What a profile brings to a pattern. */
export type Profile = {
  name: string;
  /** What an input must not hold; empty for a profile without rules of that kind. */
  guards: readonly GuardKind[];
};

export const profiles: Record<ProfileId, Profile> = {
  healthcare: {
    name: "Healthcare",
    guards: ["ssn", "medical_record_number", "date_of_birth", "patient_identifier"],
  },
  financial: {
    name: "Financial services",
    guards: ["ssn", "card_number", "bank_account_number", "iban", "routing_number"],
  },
  coding: { name: "Software", guards: [] },
  legal: { name: "Legal", guards: [] },
  content: { name: "Content", guards: [] },
  support: { name: "Customer support", guards: [] },
};
