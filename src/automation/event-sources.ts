import { randomBytes } from "node:crypto";
import { checkRoom } from "../definitions/definitions.ts";
import { toView } from "../lib/defined.ts";
import { AppError, invalidRequest, notFound } from "../lib/errors.ts";
import { makeStaleWhileRevalidate } from "../lib/stale-while-revalidate.ts";
import { idOfCall } from "../net/call-scope.ts";
import type { EventSourceRecord } from "../store/event-store.ts";
import { mapPage, type Page, type PageQuery } from "../store/page.ts";
import type { Store } from "../store/store.ts";
import type { DataKeys } from "../tenancy/data-keys.ts";
import { open, seal } from "../tenancy/envelope.ts";
import type { Caller } from "../tenancy/roles.ts";
import type { EventSourceBody, EventSourceView } from "./event-schemas.ts";
import { type SignedEvent, type SignedRequest, verifySignature } from "./signatures.ts";

type EventSourcesDeps = { store: Pick<Store, "eventSources">; dataKeys: DataKeys };

/** Bytes of a secret that is made here. */
const SECRET_BYTES = 32;

/** A source whose request was verified, and what it says of its event. */
type VerifiedEvent = SignedEvent & { source: EventSourceRecord };

/** Servers elsewhere that post events, each with a secret that it signs with. */
export function makeEventSources({ store: { eventSources }, dataKeys }: EventSourcesDeps) {
  const known = makeStaleWhileRevalidate(async (sourceId) => {
    const source = await eventSources.findById(sourceId);
    return source && { source, secret: unseal(await dataKeys.ensure(source.tenantId), source) };
  });
  return {
    /** The secret is returned here only. @throws AppError `invalid_request`, `quota_exceeded`, `unavailable` without a master key. */
    async create(
      { tenantId, subject: createdBy }: Caller,
      body: EventSourceBody,
    ): Promise<EventSourceView & { secret: string }> {
      const { name, kind, event } = body;
      const secret = body.secret ?? madeSecret();
      if (kind === "standard-webhooks" && !isStandardSecret(secret))
        throw invalidRequest("secret", "secret: must be `whsec_` and 24 to 64 bytes in base64.");
      const dataKey = await dataKeys.ensure(tenantId);
      const { id: _id, mayBeThere } = idOfCall("eventSource");
      const made = mayBeThere ? await eventSources.get(tenantId, _id) : null;
      if (made) return { ...toSourceView(made), secret: unseal(dataKey, made) };
      await checkRoom("event sources", { store: eventSources, tenantId });
      const sealed = seal(dataKey, Buffer.from(secret), contextOf(tenantId)).toString("base64");
      const source = { _id, tenantId, name, kind, event, sealed, createdBy, createdAt: new Date() };
      await eventSources.insert(source);
      return { ...toSourceView(source), secret };
    },
    list: async (tenantId: string, page: PageQuery): Promise<Page<EventSourceView>> =>
      mapPage(await eventSources.list(tenantId, page), toSourceView),
    /** @throws AppError `not_found`. */
    async remove(tenantId: string, sourceId: string): Promise<void> {
      if (!(await eventSources.remove(tenantId, sourceId))) throw notFound("event source");
      known.forget(sourceId);
    },
    /** @throws AppError `invalid_signature`, also for a source that is not there: who is refused does not learn which there are. */
    async verify(sourceId: string, request: SignedRequest): Promise<VerifiedEvent> {
      const found = await known.find(sourceId);
      const { source, secret } = found ?? { source: undefined, secret: madeSecret() };
      const event = verifySignature(source?.kind ?? "github", secret, request);
      if (source) return { ...event, source };
      throw new AppError("invalid_signature", "There is no such source of events.");
    },
  };
}

const madeSecret = () => `whsec_${randomBytes(SECRET_BYTES).toString("base64")}`;

function isStandardSecret(secret: string): boolean {
  const text = secret.replace(/^whsec_/, "");
  const bytes = Buffer.from(text, "base64");
  return /^[A-Za-z0-9+/]+=*$/.test(text) && bytes.length >= 24 && bytes.length <= 64;
}

function unseal(dataKey: Buffer, { tenantId, sealed }: EventSourceRecord): string {
  const plain = open(dataKey, Buffer.from(sealed, "base64"), contextOf(tenantId));
  if (plain) return plain.toString();
  throw new AppError("provider_key_unreadable", "The secret of this source cannot be read; make a new one.");
}

const contextOf = (tenantId: string) => `event-source:${tenantId}`;

function toSourceView({ _id: sourceId, name, kind, event, createdBy, createdAt }: EventSourceRecord): EventSourceView {
  return toView({ sourceId, name, kind, event, path: `/event-sources/${sourceId}/events`, createdBy, createdAt });
}
