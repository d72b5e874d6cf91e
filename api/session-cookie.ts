/** Over https the name has the prefix by which a browser takes the cookie from this very host alone, and never over http. */
const SECURE_NAME = "__Host-switchyard";
const PLAIN_NAME = "switchyard";

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
export function readSessionToken(header: HeaderReader): string | undefined {
  const cookies = new Map(
    (header("cookie") ?? "").split(";").map((pair) => {
      const [name = "", ...value] = pair.split("=");
      return [name.trim(), value.join("=").trim()];
    }),
  );
  const secure = cookies.get(SECURE_NAME);
  return secure ?? (isHttps(header) ? undefined : cookies.get(PLAIN_NAME));
}

/** The header that sets the cookie of a session, or removes it: scripts cannot read it, other sites cannot have it sent. */
export function sessionCookie(header: HeaderReader, session?: { token: string; expiresAt: Date }): string {
  const isSecure = isHttps(header);
  const end = session === undefined ? "Max-Age=0" : `Expires=${session.expiresAt.toUTCString()}`;
  const name = isSecure ? SECURE_NAME : PLAIN_NAME;
  return `${name}=${session?.token ?? ""}; Path=/; ${end}; HttpOnly; SameSite=Strict${isSecure ? "; Secure" : ""}`;
}
