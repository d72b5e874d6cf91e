import { defined } from "../lib/defined.ts";
import { AppError, notFound } from "../lib/errors.ts";
import { newId } from "../lib/ids.ts";
import type { Store } from "../store/store.ts";
import type { WidgetKeyChoice, WidgetKeyRecord } from "../store/widget-key-store.ts";
import { hashApiKey, makeSecret, previewOf } from "./api-keys.ts";
import { makeCallerCache } from "./caller-cache.ts";
import type { Caller } from "./roles.ts";

/** Keys that an error lists. */
const MAX_SHOWN = 100;
const keyPattern = /^pk_[0-9A-Za-z]{32}$/;

type NewWidgetKey = Omit<WidgetKeyRecord, "_id" | "hash" | "preview" | "createdAt">;

/** How a caller names widget keys. */
type WidgetKeySelector = { key?: string; id?: string; keyPreview?: string; agentId?: string };

export const isWidgetKey = (text: string) => keyPattern.test(text);

/** Publishable keys: anybody can read them in a page, so that all they can do is chat, within limits of their own. */
export function makeWidgetKeys({ tenants, widgetKeys: store }: Pick<Store, "tenants" | "widgetKeys">) {
  const callers = makeCallerCache({
    tenants,
    findByHashes: store.findByHashes,
    toFound: (record) => ({ caller: toCaller(record), expiresAt: record.expiresAt?.getTime() }),
  });
  const remove = async (tenantId: string, keys: readonly { _id: string }[]): Promise<void> => {
    const ids = keys.map(({ _id }) => _id);
    await store.remove(tenantId, ids);
    for (const keyId of ids) callers.forget(keyId);
  };
  return {
    /** The caller of this key; null when it is unknown or was revoked. Never older than 5 s. @throws as `makeCallerCache`'s. */
    authenticate: callers.find,
    /** Makes a key, which is returned here only. */
    async create(given: NewWidgetKey): Promise<{ key: string; record: WidgetKeyRecord }> {
      const key = `pk_${makeSecret()}`;
      const record: WidgetKeyRecord = {
        ...given,
        _id: newId("apiKey"),
        hash: hashApiKey(key),
        preview: previewOf(key),
        createdAt: new Date(),
      };
      await store.insert(record);
      return { key, record };
    },
    /** The newest first. */
    list: store.list,
    /**
     * Revokes the key that has all of these, or those of an agent when it alone is named; without a choice the tenant's only
     * key of no agent. @throws AppError `not_found` when there is none, `wrong_state` when several fit.
     */
    async revoke(tenantId: string, choice: WidgetKeySelector): Promise<void> {
      const found = await store.find(tenantId, toChoice(choice));
      if (found.length === 0) throw notFound("widget key");
      const isWholeAgent = choice.agentId !== undefined && Object.keys(choice).length === 1;
      if (found.length > 1 && !isWholeAgent) {
        const keys = found.slice(0, MAX_SHOWN).map(({ _id, preview }) => ({ id: _id, keyPreview: preview }));
        throw new AppError("wrong_state", "Several widget keys fit; name one by its id.", { details: { keys } });
      }
      await remove(tenantId, found);
    },
    /** Revokes the keys of an agent that was deleted, if it has any. */
    revokeOf: async (tenantId: string, agentId: string) => remove(tenantId, await store.find(tenantId, { agentId })),
  };
}

function toChoice({ key, id, keyPreview, agentId }: WidgetKeySelector): WidgetKeyChoice {
  const hash = key === undefined ? undefined : hashApiKey(key);
  const choice = defined({ hash, _id: id, preview: keyPreview, agentId });
  return Object.keys(choice).length === 0 ? { agentId: null } : choice;
}

function toCaller(record: WidgetKeyRecord): Caller {
  const { _id, tenantId, agentId, allowedOrigins, models, maxTokens, collections, linkOrigins = [] } = record;
  const answering = record.searches ? { answersFrom: { linkOrigins } } : {};
  const widget = { ...defined({ agentId, allowedOrigins, models, maxTokens }), ...answering };
  const spending = defined({ keyBudgetUsd: record.monthlyBudgetUsd });
  return { tenantId, keyId: _id, subject: `widget:${_id}`, role: "member", collections, widget, ...spending };
}
