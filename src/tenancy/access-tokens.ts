import type { createRemoteJWKSet, JWTPayload } from "jose";
import { z } from "zod";
import type { Config } from "../config/config.ts";
import { defined } from "../lib/defined.ts";
import { AppError, ConfigError, unavailable } from "../lib/errors.ts";
import { derivedId } from "../lib/ids.ts";
import { makeStaleWhileRevalidate } from "../lib/stale-while-revalidate.ts";
import { roles } from "../store/key-store.ts";
import type { TenantRecord, TenantStore } from "../store/tenant-store.ts";
import type { Caller } from "./roles.ts";

/** Algorithms of signatures; none of them has a key that we share. */
const ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"];
/** How long the server's keys are kept, and how long at least between two reads for a key that is unknown, in ms. */
const KEYS_TTL_MS = 60_000;
const KEYS_COOLDOWN_MS = 1_000;
const FETCH_TIMEOUT_MS = 5_000;
/** How far the clocks may be apart, in seconds. */
const CLOCK_TOLERANCE_S = 5;
const MAX_TOKEN = 8_192;
const jwt = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/** The scope that gives a role. */
export const scopeOf = (role: (typeof roles)[number]) => `switchyard:${role}`;

/** What subjects of tokens begin with: whoever names the subjects of keys names none of theirs. */
const TOKEN_SUBJECT = "token:";
export const isTokenSubject = (text: string) => text.startsWith(TOKEN_SUBJECT);
const MAX_SUBJECT = 256;

const scopes = z
  .union([z.string(), z.array(z.string())])
  .optional()
  .catch(undefined);
/** The claims that are used of a token; one with others than these is no key. */
const claimsSchema = z.looseObject({
  iss: z.string(),
  sub: z.string().min(1).max(MAX_SUBJECT),
  exp: z.number(),
  scope: scopes,
  scp: scopes,
});
type Claims = z.output<typeof claimsSchema>;

const isAccessToken = (text: string) => text.length <= MAX_TOKEN && jwt.test(text);

/**
 * Access tokens of the operator's authorization server as keys: JWTs (RFC 9068) that are signed by a key of its, made for us
 * and not expired. A claim names the tenant, by its name or id; a scope gives the role.
 * @throws ConfigError when tokens could not be recognised as made for us.
 */
export function makeAccessTokens({
  config,
  tenants,
}: {
  config: Config;
  tenants: Pick<TenantStore, "find" | "findByName">;
}) {
  const { issuer, audience, jwksUrl, tenantClaim } = config.tokens;
  if (issuer === undefined) return async () => null;
  if (audience.length === 0) throw new ConfigError("AUTH_ISSUER needs AUTH_AUDIENCE, or PUBLIC_URL.");
  let keys: ReturnType<typeof createRemoteJWKSet> | undefined;
  const keysOf = async () => {
    const options = { cacheMaxAge: KEYS_TTL_MS, cooldownDuration: KEYS_COOLDOWN_MS, timeoutDuration: FETCH_TIMEOUT_MS };
    const { createRemoteJWKSet } = await import("jose");
    keys ??= createRemoteJWKSet(new URL(jwksUrl ?? (await discoverKeys(issuer))), options);
    return keys;
  };
  const checks = { issuer, audience, algorithms: ALGORITHMS, clockTolerance: CLOCK_TOLERANCE_S };
  const known = makeStaleWhileRevalidate<TenantRecord | null>(
    async (named) => (await tenants.findByName(named)) ?? (await tenants.find(named)),
  );
  /** The claims of a token that is as it should be; null for any other. */
  const verify = async (token: string): Promise<JWTPayload | null> => {
    const { errors, jwtVerify } = await import("jose"); // loaded where tokens are used alone
    try {
      return (await jwtVerify(token, await keysOf(), { ...checks, requiredClaims: ["exp", "sub"] })).payload;
    } catch (error) {
      if (error instanceof errors.JWKSTimeout || !(error instanceof errors.JOSEError)) throw unreachable(error);
      // The one error of a server that does not answer with its keys.
      if (error.code === "ERR_JOSE_GENERIC") throw unreachable(error);
      return null;
    }
  };
  const callerOf = async (token: string): Promise<Caller | null> => {
    const claims = claimsSchema.safeParse(await verify(token));
    const named = claims.data?.[tenantClaim];
    if (!claims.success || typeof named !== "string" || named === "") return null;
    const tenant = await known.find(named);
    return tenant && toCaller(tenant, claims.data);
  };
  return async (token: string) => (isAccessToken(token) ? callerOf(token) : null);
}

/** @throws AppError `insufficient_scope` without a role. */
function toCaller({ _id: tenantId, rootTenantId, createdAt: at }: TenantRecord, claims: Claims): Caller {
  const scopes = scopesOf(claims);
  const role = roles.findLast((each) => scopes.includes(scopeOf(each)));
  if (role === undefined) {
    throw new AppError("insufficient_scope", `The token needs one of the scopes ${roles.map(scopeOf).join(", ")}.`);
  }
  const keyId = derivedId("apiKey", { at, from: `${claims.iss}\n${tenantId}\n${claims.sub}` });
  return {
    tenantId,
    keyId,
    subject: `${TOKEN_SUBJECT}${claims.sub}`,
    role,
    collections: undefined,
    expiresAt: new Date(claims.exp * 1_000),
    ...defined({ rootTenantId }),
  };
}

const unreachable = (cause: unknown) => unavailable("The authorization server", cause);

/** The scopes of a token: a text with blanks between them (RFC 9068), or the text or list of `scp`. */
function scopesOf({ scope, scp }: Claims): string[] {
  const given = scope ?? scp ?? [];
  return typeof given === "string" ? given.split(" ") : given;
}

const metadataSchema = z.looseObject({ jwks_uri: z.url({ protocol: /^https?$/ }) });

/** Where the server's keys are, by its metadata (OpenID Connect Discovery, RFC 8414). @throws AppError `unavailable`. */
async function discoverKeys(issuer: string): Promise<string> {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, "");
  const places = [
    `${origin}${path}/.well-known/openid-configuration`,
    `${origin}/.well-known/oauth-authorization-server${path}`,
  ];
  for (const place of places) {
    try {
      const response = await fetch(place, { signal: AbortSignal.timeout(FETCH_TIMEOUT_MS) });
      if (response.ok) return metadataSchema.parse(await response.json()).jwks_uri;
    } catch (error) {
      if (place === places.at(-1)) throw unreachable(error);
    }
  }
  throw unreachable(new Error(`${issuer} has no metadata`));
}
