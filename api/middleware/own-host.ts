import { AppError } from "../../src/lib/errors.ts";
import type { ApiContext } from "../context.ts";

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
