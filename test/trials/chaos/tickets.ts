/**
 * A ticket names one piece of work and the tenant that it is for, as `t2w57`. It stands in every text of that work, so that
 * each text shows which tenant it belongs to.
 */
export type Ticket = { tenant: number; text: string };

const pattern = /\bt(\d+)w\d+\b/g;

export function makeTickets(tenant: number): () => Ticket {
  let last = 0;
  return () => {
    last += 1;
    return { tenant, text: `t${tenant}w${last}` };
  };
}

/** The first ticket in a text. */
export function ticketIn(text: string): string | undefined {
  return text.match(pattern)?.[0];
}

/** The tenants whose tickets are in a text. */
export function tenantsIn(text: string): Set<string> {
  return new Set(Array.from(text.matchAll(pattern), ([, tenant = ""]) => tenant));
}

/** The tenant of a ticket; NaN if that is none. */
export const tenantOf = (ticket: string): number => Number([...tenantsIn(ticket)][0]);
