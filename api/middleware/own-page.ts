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
