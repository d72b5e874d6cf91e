import { AppError } from "../../src/errors.ts";
import type { Role } from "../../src/store/key-store.ts";
import { type Caller, hasRole } from "../../src/tenancy/roles.ts";
import type { Tenancy } from "../../src/tenancy/tenancy.ts";
import type { ApiContext } from "../context.ts";

/** How often the key of an open stream is checked again, in ms. */
const RECHECK_MS = 5_000;
const bearer = /^Bearer +([^\s]+) *$/i;

/** Where Anthropic's clients put the key. `Authorization` goes first: a client that sends both was told to use it. */
const KEY_HEADER = "x-api-key";

/** The caller by the key in `Authorization`, or in `x-api-key`. @throws AppError `missing_api_key`, `invalid_api_key`, `rate_limited`, `insufficient_role`. */
export async function authenticate(
  ctx: ApiContext,
  { tenancy, needed }: { tenancy: Pick<Tenancy, "authenticate">; needed: Role },
  client: () => string,
): Promise<Caller> {
  const header = ctx.req.headers.authorization || toBearer(ctx.get(KEY_HEADER));
  if (header === "") {
    throw new AppError("missing_api_key", "Send your API key as `Authorization: Bearer <key>`.");
  }
  const key = bearer.exec(header)?.[1];
  if (key === undefined && /^[sp]k_\S+ *$/.test(header)) {
    throw new AppError("invalid_api_key", "The word `Bearer` is missing: send `Authorization: Bearer <key>`.");
  }
  const caller = key === undefined ? null : await tenancy.authenticate(key, client);
  if (caller === null) throw new AppError("invalid_api_key", "The API key is unknown, has expired or was revoked.");
  ctx.state.caller = caller;
  if (!hasRole(caller.role, needed)) {
    const message = `This needs a key with the role ${needed}; yours has the role ${caller.role}.`;
    throw new AppError("insufficient_role", message);
  }
  return caller;
}

const toBearer = (key: string) => (key === "" ? "" : `Bearer ${key}`);

/** Cuts an open stream soon after its key was revoked or has expired; call the result when the stream ends. */
export function watchKey(ctx: ApiContext, tenancy: Pick<Tenancy, "authenticate">): () => void {
  const key = bearer.exec(ctx.get("authorization") || toBearer(ctx.get(KEY_HEADER)))?.[1];
  if (key === undefined) return () => undefined;
  const recheck = async () => {
    if ((await tenancy.authenticate(key)) === null) ctx.res.destroy();
  };
  // A store that is unavailable says nothing about the key; the next check will.
  const timer = setInterval(() => void recheck().catch(() => undefined), RECHECK_MS).unref();
  return () => clearInterval(timer);
}

/** The caller of a public route, without a tenant, so that a query on tenant data by mistake throws. */
export const anonymous: Caller = Object.freeze({ tenantId: "", keyId: "", subject: "", role: "member" });
