import { AppError } from "../../src/lib/errors.ts";
import type { Operator } from "../../src/tenancy/operator.ts";
import type { ApiContext } from "../context.ts";
import { readOperatorToken } from "../session-cookie.ts";
import { rejectForeignPage } from "./same-origin.ts";

type Door = { operator: Operator; allowedHosts: readonly string[]; client: () => string };

/**
 * Whether a request is the operator's: by the password in `Authorization`, as bearer or of HTTP Basic, or by a session.
 * @throws AppError `rate_limited` for an address that guesses; `foreign_origin` for what another site made a browser send.
 */
export async function isOperator(ctx: ApiContext, { operator, allowedHosts, client }: Door): Promise<boolean> {
  const password = readPassword(ctx.get("authorization"));
  if (password !== undefined) {
    if (!(await operator.isPassword(password, client()))) return false;
    rejectForeignOrigin(ctx);
    return true;
  }
  const token = readOperatorToken((name) => ctx.get(name) || undefined);
  if (token === undefined) return false;
  rejectForeignPage(ctx, allowedHosts);
  return operator.hasSession(token, client());
}

/** @throws AppError `missing_api_key`, `invalid_api_key`; `not_found` where the service has no operator; as `isOperator`. */
export async function admitOperator(ctx: ApiContext, door: Door): Promise<void> {
  if (!door.operator.isSet) throw new AppError("not_found", "This is off: the setting ADMIN_TOKEN is not set.");
  if (await isOperator(ctx, door)) return;
  const isGiven = ctx.get("authorization") !== "" || ctx.get("cookie") !== "";
  if (isGiven) throw new AppError("invalid_api_key", "This needs the operator's password, or a session of it.");
  throw new AppError("missing_api_key", "Send the operator's password as `Authorization: Bearer <ADMIN_TOKEN>`.");
}

/** The password of an `Authorization` header; undefined for none, empty for a header of another kind. */
export function readPassword(header: string): string | undefined {
  if (header === "") return undefined;
  const [scheme = "", value = ""] = header.split(/ +/, 2);
  if (scheme.toLowerCase() === "bearer") return value;
  if (scheme.toLowerCase() !== "basic") return "";
  const text = Buffer.from(value, "base64").toString("utf8");
  return text.slice(text.indexOf(":") + 1);
}

/**
 * A browser sends a password of HTTP Basic by itself, so another site must not be able to act with it. Browsers name the
 * site in `Origin` with every request that changes something, and in `Sec-Fetch-Site` where the connection is trustworthy.
 */
function rejectForeignOrigin(ctx: ApiContext): void {
  if (ctx.method === "GET" || ctx.method === "HEAD") return;
  const origin = ctx.get("origin");
  const isOwnOrigin = origin === "" || origin.replace(/^https?:\/\//, "") === ctx.get("host");
  if (isOwnOrigin && ["", "same-origin", "none"].includes(ctx.get("sec-fetch-site"))) return;
  throw new AppError("foreign_origin", "Another site may not act for the operator.");
}
