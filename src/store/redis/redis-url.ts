import { z } from "zod";

export type RedisHost = { host: string; port: number };
type Credentials = { username?: string; password?: string };
/** How the servers themselves are spoken to. */
type Access = Credentials & { db: number; isTls: boolean };

/** Where Redis is; `host` is for messages. The URL of a single server is the client's own form. */
export type RedisPlace = { host: string } & (
  | { kind: "server"; url: string }
  | { kind: "sentinel"; hosts: RedisHost[]; primary: string; sentinel: Credentials; access: Access }
  | { kind: "cluster"; hosts: RedisHost[]; access: Access }
);

const DEFAULT_PORT = 6_379;
const DEFAULT_SENTINEL_PORT = 26_379;
/** Scheme, user info, hosts by commas, path, query. */
const FORM = /^(rediss?)(\+sentinel)?:\/\/(?:([^/?#]*)@)?([^/?#@]+)(\/[^?#]*)?(?:\?([^#]*))?$/;
const HOST = /^(\[[\da-f:.]+\]|[^:[\]\s]+)(?::(\d+))?$/i;

/** `REDIS_URL` as a setting. Whether it fits `REDIS_CLUSTER` is for `readRedisUrl`. */
export const redisUrlForm = z
  .string()
  .refine(
    (text) => [false, true].some((isCluster) => readRedisUrl(text, isCluster) !== null),
    "must be a URL, as redis://127.0.0.1:6379 or redis+sentinel://host-a,host-b/primary, or the path of a socket",
  )
  .optional();

/** What a URL of Redis says; null when it is none. Of a cluster it may name several servers, by commas. */
export function readRedisUrl(text: string, isCluster: boolean): RedisPlace | null {
  if (!isCluster && /^(unix:\/\/.|\/)/.test(text))
    return { kind: "server", url: text, host: text.replace(/\?.*$/s, "") };
  const [, scheme, sentinel, userInfo = "", authority = "", path = "", query = ""] = FORM.exec(text) ?? [];
  if (scheme === undefined) return null;
  const isOne = !authority.includes(",");
  if (!isCluster && !sentinel)
    return isOne && URL.canParse(text) ? { kind: "server", url: text, host: authority } : null;
  const hosts = readHosts(authority, sentinel ? DEFAULT_SENTINEL_PORT : DEFAULT_PORT);
  const parts = path.split("/").slice(1).map(decode);
  const [primary, dbText = "0", ...more] = sentinel ? parts : [undefined, ...parts];
  const db = readNumber(dbText || "0", { from: 0, to: 1_000_000 });
  if (hosts === null || db === null || more.length > 0) return null;
  const place = {
    host: authority,
    hosts,
    access: { ...readUserInfo(userInfo), db, isTls: scheme === "rediss" },
  };
  if (isCluster) return sentinel || db !== 0 ? null : { kind: "cluster", ...place };
  if (!primary) return null;
  const given = new URLSearchParams(query);
  const credentials = credentialsOf(given.get("sentinelUsername"), given.get("sentinelPassword"));
  return { kind: "sentinel", ...place, primary, sentinel: credentials };
}

function readHosts(authority: string, defaultPort: number): RedisHost[] | null {
  const hosts = authority.split(",").map((one) => {
    const [, host, text] = HOST.exec(one) ?? [];
    const port = text === undefined ? defaultPort : readNumber(text, { from: 1, to: 65_535 });
    return host !== undefined && port !== null ? { host: host.replace(/^\[|\]$/g, ""), port } : null;
  });
  return hosts.every((host) => host !== null) ? hosts : null;
}

function readNumber(text: string, { from, to }: { from: number; to: number }): number | null {
  const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  return number >= from && number <= to ? number : null;
}

function readUserInfo(text: string): Credentials {
  const [, username = "", password = ""] = /^([^:]*):?(.*)$/s.exec(text) ?? [];
  return credentialsOf(decode(username), decode(password));
}

function credentialsOf(username: string | null, password: string | null): Credentials {
  return { ...(username && { username }), ...(password && { password }) };
}

/** Decodes percent signs; what is no code stays as it is. */
function decode(text: string): string {
  return new URLSearchParams(`text=${text.replaceAll("+", "%2B").replaceAll("&", "%26")}`).get("text") ?? "";
}
