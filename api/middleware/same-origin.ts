import { AppError } from "../../src/lib/errors.ts";
import type { ApiContext } from "../context.ts";

/**
 * Refuses a request by cookie that another site made a browser send. What changes something must name our own origin, which a
 * browser does and no page can forge; ours are the `Host` that was called, and `allowed`, as `name` (on the usual port) or
 * `name:port`, for a proxy that calls this service by another name.
 * @throws AppError `foreign_origin`.
 */
export function rejectForeignPage(ctx: ApiContext, allowed: readonly string[]): void {
  const isOwnSite = ["", "same-origin", "none"].includes(ctx.get("sec-fetch-site"));
  const isRead = ctx.method === "GET" || ctx.method === "HEAD";
  if (isOwnSite && (isRead || isOwnOrigin(ctx, allowed))) return;
  throw new AppError("foreign_origin", "A session is for the pages of this service alone; other programs send a key.");
}

function isOwnOrigin(ctx: ApiContext, allowed: readonly string[]): boolean {
  const [, scheme, authority = ""] = /^(https?):\/\/([^/]+)$/i.exec(ctx.get("origin")) ?? [];
  if (ctx.get("x-forwarded-proto") === "https" && scheme !== "https") return false;
  const own = [ctx.get("host"), ...allowed].map((name) => name.toLowerCase());
  return authority !== "" && own.includes(authority.toLowerCase());
}

const authorityPattern = /^(?:\[[0-9a-f:.]+\]|[\w.-]+)(?::\d{1,5})?$/i;
const loopback = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/**
 * Refuses calls under a host name that is not ours, and pages of foreign origins: so a page whose name was pointed at
 * this machine (DNS rebinding) cannot use the tools of its visitor. Ours are loopback, the address that was connected to,
 * and `allowed`, each as `name` (any port) or `name:port`. A proxy's `X-Forwarded-Host` is ignored: the operator lists its name.
 * @throws AppError `foreign_origin`.
 */
export function rejectForeignHost(ctx: ApiContext, allowed: readonly string[]): void {
  const { host = "", origin } = ctx.req.headers;
  if (!isOwn(host, ctx, allowed)) {
    throw new AppError("foreign_origin", "The Host is not one of this service; see the setting ALLOWED_HOSTS.");
  }
  if (origin !== undefined && !isOwn(authorityOf(origin), ctx, allowed)) {
    throw new AppError("foreign_origin", "Pages of this Origin may not call this.");
  }
}

/** `example.com:8080` of `https://example.com:8080`; empty for anything but an http origin, as `null`. */
function authorityOf(origin: string): string {
  return /^https?:\/\/([^/]+)$/i.exec(origin)?.[1] ?? "";
}

function isOwn(authority: string, ctx: ApiContext, allowed: readonly string[]): boolean {
  if (!authorityPattern.test(authority)) return false;
  const whole = authority.toLowerCase();
  const name = whole.replace(/:\d+$/, "").replace(/\.$/, "");
  if (loopback.test(name) || allowed.includes("*")) return true;
  if (allowed.some((each) => [name, whole].includes(each.toLowerCase()))) return true;
  return name.replace(/^\[|\]$/g, "") === ctx.req.socket.localAddress?.replace(/^::ffff:/, "");
}
