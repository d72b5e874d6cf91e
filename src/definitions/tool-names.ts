import { AppError } from "../lib/errors.ts";
import type { Store } from "../store/store.ts";

/** Tools that one tenant publishes at most: the list of tools shows all of them. */
export const MAX_PUBLISHED = 100;

/**
 * How long a name stays with a definition that does not publish it, in ms: its writer may be at work. A longer one has left
 * the name behind, as a process does that dies between the two.
 */
const CLAIM_GRACE_MS = 600_000;

type Deps = { store: Pick<Store, "toolNames" | "agents" | "workflows" | "searchTools"> };

/** A definition that is written. `name`: what it publishes from now on; `earlier`: what it published before. */
type Claim = {
  tenantId: string;
  ownerId: string;
  name: string | undefined;
  earlier: string | undefined;
  /** The field of the request that holds the name, for errors. */
  field?: string | undefined;
};

export type ToolNames = ReturnType<typeof makeToolNames>;

/**
 * The names of a tenant's tools. A name is claimed before the definition is written that publishes it, by the insertion of a
 * record whose id holds the name: of two definitions at the same instant, one gets it.
 */
export function makeToolNames({ store }: Deps) {
  const { toolNames } = store;
  const kinds = [store.agents, store.workflows, store.searchTools];

  const publishersOf = async (tenantId: string, name: string) =>
    (await Promise.all(kinds.map((kind) => kind.findPublished(tenantId, name)))).flatMap((found) => found?._id ?? []);

  const claim = async ({ tenantId, ownerId, name, earlier, field = "publish.name" }: Claim & { name: string }) => {
    const held = await toolNames.claim(tenantId, { name, ownerId });
    const isLeft = Date.now() - held.claimedAt.getTime() > CLAIM_GRACE_MS;
    const others = (await publishersOf(tenantId, name)).filter((id) => id !== ownerId);
    const isMine =
      held.ownerId === ownerId || (isLeft && others.length === 0 && (await toolNames.takeOver(held, ownerId)));
    if (isMine && (others.length === 0 || name === earlier)) return;
    if (isMine) await toolNames.release(tenantId, { name, ownerId });
    throw new AppError("wrong_state", `There is a tool ${name} already.`, { param: field });
  };

  /** Removes names that their definitions do not publish. */
  const sweep = async (tenantId: string) => {
    const held = await toolNames.list(tenantId, 2 * MAX_PUBLISHED);
    for (const { name, ownerId, claimedAt } of held) {
      if (Date.now() - claimedAt.getTime() <= CLAIM_GRACE_MS) continue;
      const publishers = await publishersOf(tenantId, name);
      if (!publishers.includes(ownerId)) await toolNames.release(tenantId, { name, ownerId });
    }
  };

  const isOver = async (tenantId: string) => {
    const [claimed, ...published] = await Promise.all([
      toolNames.count(tenantId, MAX_PUBLISHED + 1),
      ...kinds.map((kind) => kind.countPublished(tenantId, MAX_PUBLISHED)),
    ]);
    return claimed > MAX_PUBLISHED || published.reduce((sum, count) => sum + count, 0) >= MAX_PUBLISHED;
  };

  return {
    /**
     * Writes a definition under its name; a name that it has no more is free then. When `write` fails, so is the new one.
     * @throws AppError `wrong_state` for a name that is taken; `quota_exceeded` beyond the most that a tenant publishes.
     */
    async hold<T>(wanted: Claim, write: () => Promise<T>): Promise<T> {
      const { tenantId, ownerId, name, earlier } = wanted;
      const isNew = name !== undefined && name !== earlier;
      if (name !== undefined) await claim({ ...wanted, name });
      let written: T;
      try {
        if (isNew && earlier === undefined && (await isOver(tenantId))) {
          await sweep(tenantId);
          if (await isOver(tenantId)) {
            const message = `A tenant publishes ${MAX_PUBLISHED} tools at most.`;
            throw new AppError("quota_exceeded", message, { param: "publish" });
          }
        }
        written = await write();
      } catch (error) {
        if (isNew) await toolNames.release(tenantId, { name, ownerId });
        throw error;
      }
      if (earlier !== undefined && earlier !== name) await toolNames.release(tenantId, { name: earlier, ownerId });
      return written;
    },
  };
}
