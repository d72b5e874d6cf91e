import { checkRoom, makeDefinitions, toVersionView } from "../definitions/definitions.ts";
import type { ToolNames } from "../definitions/tool-names.ts";
import type { Jobs } from "../jobs/jobs.ts";
import { defined, toView } from "../lib/defined.ts";
import { AppError, notFound } from "../lib/errors.ts";
import type { Egress } from "../net/egress.ts";
import type { DeliveryRecord } from "../store/delivery-store.ts";
import { mapPage, type Page, type PageQuery } from "../store/page.ts";
import type { Store } from "../store/store.ts";
import type { WebhookChange, WebhookRecord } from "../store/webhook-store.ts";
import { type Caller, rootOf } from "../tenancy/roles.ts";
import type { DeliveryView, WebhookBody, WebhookEvent, WebhookView } from "./subscription-schemas.ts";

/** Webhooks that a tenant may have. */
export const MAX_WEBHOOKS = 100;

type SubscriptionsDeps = {
  jobs: Pick<Jobs, "webhooksChanged">;
  store: Pick<Store, "webhooks" | "deliveries">;
  egress: Pick<Egress, "check">;
  toolNames: ToolNames;
};

type WebhookReplacement = WebhookBody & { version?: number | undefined };

/** The addresses that a tenant has told of what happens in it, and the messages to them. */
export function makeSubscriptions({ store: { webhooks, deliveries }, jobs, egress, toolNames }: SubscriptionsDeps) {
  const definitions = makeDefinitions({
    what: "webhook",
    store: webhooks,
    toolNames,
    checkQuota: (tenantId) => checkRoom("webhooks", { store: webhooks, tenantId, most: MAX_WEBHOOKS }),
    async toChange(
      caller,
      { url, events, description, enabled }: Omit<WebhookReplacement, "version">,
    ): Promise<WebhookChange> {
      egress.check(url, "url");
      const unique = [...new Set(events)];
      const families = [...new Set(unique.map(familyOf))];
      const about = defined({ description, endsAt: caller.expiresAt });
      return { url, events: unique, families, isEnabled: enabled, owner: rootOf(caller), ...about };
    },
    toView: toWebhookView,
    toSummary: toWebhookView,
  });
  const { find } = definitions;
  return {
    /** @throws AppError `source_refused` for an address that is never called, `quota_exceeded`. */
    async create(caller: Caller, body: WebhookBody): Promise<WebhookView> {
      const created = await definitions.create(caller, body);
      jobs.webhooksChanged(caller.tenantId);
      return created;
    },
    list: definitions.list,
    get: definitions.get,
    /** @throws AppError as `create`; `not_found`, `wrong_state`. */
    async replace(caller: Caller, id: string, body: WebhookReplacement): Promise<WebhookView> {
      const replaced = await definitions.replace(caller, id, body);
      jobs.webhooksChanged(caller.tenantId);
      return replaced;
    },
    remove: definitions.remove,
    /** @throws AppError `not_found`. */
    async deliveries(tenantId: string, id: string, page: PageQuery): Promise<Page<DeliveryView>> {
      await find(tenantId, id);
      return mapPage(await deliveries.list(tenantId, id, page), toDeliveryView);
    },
    /** Sends a message again, under its id. @throws AppError `not_found`; `wrong_state` for one that is to be sent anyway. */
    async replay(tenantId: string, id: string, deliveryId: string): Promise<DeliveryView> {
      const { url } = await find(tenantId, id);
      const replayed = await deliveries.replay(tenantId, { webhookId: id, id: deliveryId, url });
      if (replayed) return toDeliveryView(replayed);
      const there = await deliveries.get(tenantId, deliveryId);
      if (there?.webhookId !== id) throw notFound("delivery");
      throw new AppError("wrong_state", "The message is about to be sent.");
    },
  };
}

/** The family of a type, as `job` of `job.failed`. */
export const familyOf = (type: string) => type.slice(0, type.indexOf("."));

function toWebhookView(webhook: WebhookRecord): WebhookView {
  const { _id: webhookId, url, description, isEnabled: enabled, endsAt } = webhook;
  const events = webhook.events as WebhookEvent[]; // as `toChange` stored them
  return {
    ...{ webhookId, url, events, enabled, ...defined({ description, endsAt: endsAt?.toISOString() }) },
    ...toVersionView(webhook),
  };
}

function toDeliveryView({ _id: deliveryId, status, attempts, log, body, ...record }: DeliveryRecord): DeliveryView {
  const { createdAt, deliveredAt, nextAt } = record;
  const type = record.type as WebhookEvent; // as the sweep stored it
  return {
    ...{ deliveryId, type, status, attempts, log: log.map((one) => toView(one)), message: JSON.parse(body) },
    ...toView({ createdAt, deliveredAt, nextAt }),
  };
}
