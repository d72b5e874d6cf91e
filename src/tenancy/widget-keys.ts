import { notFound } from "../errors.ts";
import { newId } from "../ids.ts";
import type { Page, PageQuery } from "../store/page.ts";
import type { ShownWidgetKey, WidgetKeyChoice, WidgetKeyDocument, WidgetKeyStore } from "../store/widget-key-store.ts";
import { hashApiKey, makeSecret } from "./api-keys.ts";
import { makeCallerCache } from "./caller-cache.ts";
import type { Caller, WidgetScope } from "./roles.ts";

const keyPattern = /^pk_[0-9A-Za-z]{32}$/;

export type NewWidgetKey = { tenantId: string; createdBy: string; agentId?: string; allowedOrigins?: string[] };

/** Publishable keys: they stand in pages for anybody to read, so that all they can do is chat, within limits of their own. */
export type WidgetKeys = {
  /** Who calls by this key; null when it is not known or was revoked. Never older than 5 s. */
  authenticate(key: string): Caller | null | Promise<Caller | null>;
  /** Makes a key. It is told here once and never again. */
  create(given: NewWidgetKey): Promise<{ key: string; record: WidgetKeyDocument }>;
  /** The newest first. */
  list(tenantId: string, page: PageQuery): Promise<Page<ShownWidgetKey>>;
  /** @throws AppError `not_found` when there is none. */
  revoke(tenantId: string, choice: WidgetKeyChoice | { key: string }): Promise<void>;
};

export const isWidgetKey = (text: string) => keyPattern.test(text);

export function makeWidgetKeys(store: WidgetKeyStore): WidgetKeys {
  const callers = makeCallerCache(async (key) => {
    const found = await store.findByHash(hashApiKey(key));
    return found && { caller: toCaller(found), expiresAt: undefined };
  });
  return {
    authenticate: (key) => callers.find(key),
    async create({ tenantId, createdBy, agentId, allowedOrigins }) {
      const key = `pk_${makeSecret()}`;
      const record: WidgetKeyDocument = {
        _id: newId("apiKey"),
        tenantId,
        hash: hashApiKey(key),
        preview: `${key.slice(0, 7)}…${key.slice(-4)}`,
        ...(agentId === undefined ? {} : { agentId }),
        ...(allowedOrigins === undefined ? {} : { allowedOrigins }),
        createdBy,
        createdAt: new Date(),
      };
      await store.insert(record);
      return { key, record };
    },
    list: (tenantId, page) => store.list(tenantId, page),
    async revoke(tenantId, choice) {
      const removed = await store.remove(tenantId, "key" in choice ? { hash: hashApiKey(choice.key) } : choice);
      if (removed.length === 0) throw notFound("widget key");
      for (const keyId of removed) callers.forget(keyId);
    },
  };
}

function toCaller({ _id, tenantId, agentId, allowedOrigins }: WidgetKeyDocument): Caller {
  const widget: WidgetScope = {
    ...(agentId === undefined ? {} : { agentId }),
    ...(allowedOrigins === undefined ? {} : { allowedOrigins }),
  };
  return { tenantId, keyId: _id, subject: `widget:${_id}`, role: "member", widget };
}
