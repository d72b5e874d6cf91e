/** Values that stand in texts of two tenants: the guards of the first mask one, those of the second block one. */
export const canaries = { masked: "4012 8888 8888 1881", blocked: "219-09-8642" } as const;
const MASKING = 1;
const BLOCKING = 2;
const everywhere = (action: string) =>
  Object.fromEntries(["input", "output", "toolInput", "toolOutput", "ingest", "log"].map((place) => [place, action]));

/** What a tenant's guards do. */
export const policyOf = (tenant: number) => {
  if (tenant === MASKING) return { rules: { card_number: everywhere("mask") } };
  return tenant === BLOCKING ? { rules: { ssn: everywhere("block") } } : undefined;
};
/** What is sown in a text of a tenant whose guards mask. */
export const sownFor = (tenant: number) => (tenant === MASKING ? ` The card is ${canaries.masked}.` : "");
/** A text with what was sown in it again, in place of its marks. */
export const withoutMarks = (text: string) => text.replaceAll(/\[CARD_\d+\]/g, canaries.masked);
export const isBlocking = (tenant: number) => tenant === BLOCKING;
