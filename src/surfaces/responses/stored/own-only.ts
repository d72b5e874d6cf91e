import { notFound } from "../../../lib/errors.ts";
import type { Store } from "../../../store/store.ts";
import { ownKeyOf, type Viewer } from "../../../tenancy/roles.ts";

/** What a call is about: ids of responses and of conversations. */
export type Referred = { responses?: readonly string[]; conversations?: readonly string[] };

/**
 * Makes the check that a caller may see these: a key that is limited to collections sees what it has asked for itself, since
 * what others asked may hold documents that it must not read. It throws AppError `not_found`, and nothing for an unknown id.
 */
export function makeOwnOnly({
  responses,
  conversations,
}: {
  responses: Pick<Store["responses"], "foreignTo">;
  conversations: Pick<Store["conversations"], "foreignTo">;
}) {
  return async (caller: Viewer, referred: Referred): Promise<void> => {
    const keyId = ownKeyOf(caller);
    if (keyId === undefined) return;
    for (const [what, store, ids = []] of [
      ["response", responses, referred.responses],
      ["conversation", conversations, referred.conversations],
    ] as const) {
      if (ids.length === 0) continue;
      if ((await store.foreignTo(caller.tenantId, keyId, ids)).length > 0) throw notFound(what);
    }
  };
}
