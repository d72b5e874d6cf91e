import { derivedId } from "../lib/ids.ts";

/**
 * The id of the job that something starts for one of its times: the same wherever that time is taken, so that each is started
 * once, whatever dies.
 */
export const slotJobId = (ownerId: string, slotAt: Date): string =>
  derivedId("job", { at: slotAt, from: `${ownerId}\n${slotAt.getTime()}` });
