/** The cookies of tenants' sessions and of the operator's. */
const TENANT = "switchyard";
const OPERATOR = "switchyard-operator";
/** Over https the name has the prefix by which a browser takes the cookie from this very host alone, and never over http. */
const SECURE_PREFIX = "__Host-";

type HeaderReader = (name: string) => string | undefined;

/**
 * Whether a browser sees this service over https: by the origin of its page, or by what a proxy reports. Neither needs to be
 * trusted: who sets them wrongly gets a cookie that is sent over https alone.
 */
function isHttps(header: HeaderReader): boolean {
  return header("origin")?.startsWith("https:") === true || header("x-forwarded-proto") === "https";
}

/**
 * The token in a request's cookie; undefined when there is none. Where both are there, or a proxy reports https, only the
 * cookie of the secure name counts: a neighbouring host can set the other one.
 */
export const readSessionToken = (header: HeaderReader): string | undefined => readToken(header, TENANT);

/** The same of the operator's. */
export const readOperatorToken = (header: HeaderReader): string | undefined => readToken(header, OPERATOR);

function readToken(header: HeaderReader, name: string): string | undefined {
  const cookies = new Map(
    (header("cookie") ?? "").split(";").map((pair) => {
      const [name = "", ...value] = pair.split("=");
      return [name.trim(), value.join("=").trim()];
    }),
  );
  const secure = cookies.get(`${SECURE_PREFIX}${name}`);
  return secure ?? (isHttps(header) ? undefined : cookies.get(name));
}

type OpenSession = { token: string; expiresAt: Date };

/** The header that sets the cookie of a session, or removes it: scripts cannot read it, other sites cannot have it sent. */
export const sessionCookie = (header: HeaderReader, session?: OpenSession): string => toCookie(header, TENANT, session);

/** The same of the operator's. */
export const operatorCookie = (header: HeaderReader, session?: OpenSession): string =>
  toCookie(header, OPERATOR, session);

function toCookie(header: HeaderReader, plainName: string, session: OpenSession | undefined): string {
  const isSecure = isHttps(header);
  const end = session === undefined ? "Max-Age=0" : `Expires=${session.expiresAt.toUTCString()}`;
  const name = isSecure ? `${SECURE_PREFIX}${plainName}` : plainName;
  return `${name}=${session?.token ?? ""}; Path=/; ${end}; HttpOnly; SameSite=Strict${isSecure ? "; Secure" : ""}`;
}
