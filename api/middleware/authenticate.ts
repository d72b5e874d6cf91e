import { AppError } from "../../src/lib/errors.ts";
import type { Role } from "../../src/store/key-store.ts";
import { type Caller, hasRole } from "../../src/tenancy/roles.ts";
import type { Tenancy } from "../../src/tenancy/tenancy.ts";
import type { ApiContext } from "../context.ts";
import { readSessionToken } from "../session-cookie.ts";
import { rejectForeignPage } from "./same-origin.ts";

/** How often the key of an open stream is checked again, in ms. */
const RECHECK_MS = 5_000;
const bearer = /^Bearer +([^\s]+) *$/i;

/** Where Anthropic's clients put the key. `Authorization` goes first: a client that sends both has it from its own settings. */
const KEY_HEADER = "x-api-key";

type Door = {
  tenancy: Pick<Tenancy, "authenticate" | "sessions">;
  needed: Role;
  /** Names of this service besides the `Host` of a request, as `rejectForeignPage` takes them. */
  allowedHosts: readonly string[];
};

/**
 * The caller by the key in `Authorization`, or in `x-api-key`; without either by the session in the cookie.
 * @throws AppError `missing_api_key`, `invalid_api_key`, `rate_limited`, `insufficient_role`; `foreign_origin` for a session.
 */
export async function authenticate(ctx: ApiContext, door: Door, client: () => string): Promise<Caller> {
  const header = ctx.req.headers.authorization || toBearer(ctx.get(KEY_HEADER));
  const caller = header === "" ? await findBySession(ctx, door, client) : await findByKey(header, door, client);
  ctx.state.caller = caller;
  const { needed } = door;
  if (!hasRole(caller.role, needed)) {
    const message = `This needs a key with the role ${needed}; yours has the role ${caller.role}.`;
    throw new AppError("insufficient_role", message);
  }
  return caller;
}

async function findByKey(header: string, { tenancy }: Door, client: () => string): Promise<Caller> {
  const key = bearer.exec(header)?.[1];
  if (key === undefined && /^[sp]k_\S+ *$/.test(header)) {
    throw new AppError("invalid_api_key", "The word `Bearer` is missing: send `Authorization: Bearer <key>`.");
  }
  const caller = key === undefined ? null : await tenancy.authenticate(key, client);
  if (caller === null) throw new AppError("invalid_api_key", "The API key is unknown, has expired or was revoked.");
  return caller;
}

async function findBySession(ctx: ApiContext, door: Door, client: () => string): Promise<Caller> {
  const token = readSessionToken((name) => ctx.get(name));
  if (token === undefined) {
    throw new AppError("missing_api_key", "Send your API key as `Authorization: Bearer <key>`.");
  }
  rejectForeignPage(ctx, door.allowedHosts);
  const caller = await door.tenancy.sessions.authenticate(token, client);
  if (caller === null) throw new AppError("invalid_api_key", "The session has ended; sign in again.");
  return caller;
}

const toBearer = (key: string) => (key === "" ? "" : `Bearer ${key}`);

/** The key of a request; undefined for one without, as by session. */
export function readKey(header: (name: string) => string | undefined): string | undefined {
  return bearer.exec(header("authorization") || toBearer(header(KEY_HEADER) ?? ""))?.[1];
}

/** Cuts an open stream soon after its key was revoked or has expired, or its session ended; call the result when it ends. */
export function watchKey(ctx: ApiContext, { authenticate: find, sessions }: Door["tenancy"]): () => void {
  if (ctx.state.caller === undefined) return () => undefined;
  const header = (name: string) => ctx.get(name);
  const key = readKey(header);
  const recheck = async () => {
    const caller = key === undefined ? sessions.authenticate(readSessionToken(header) ?? "") : find(key);
    if ((await caller) === null) ctx.res.destroy();
  };
  // A store that is unavailable says nothing about the key; the next check will.
  const timer = setInterval(() => void recheck().catch(() => undefined), RECHECK_MS).unref();
  return () => clearInterval(timer);
}

/** The caller of a public route, without a tenant, so that a query on tenant data by mistake throws. */
export const anonymous: Caller = Object.freeze({
  tenantId: "",
  keyId: "",
  subject: "",
  role: "member",
  collections: undefined,
});
