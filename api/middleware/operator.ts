import { createHash, timingSafeEqual } from "node:crypto";
import type { ApiContext } from "../context.ts";
import { sendReply } from "../send-reply.ts";

/**
 * Lets the operator pass, who shows the `ADMIN_TOKEN` as the password of HTTP Basic or as bearer; anybody else, a tenant's
 * key too, is answered 401 here, in a way that makes a browser ask for the password.
 */
export function admitOperator(ctx: ApiContext, adminToken: string): boolean {
  if (isOperator(ctx.get("authorization"), adminToken)) return true;
  const { requestId } = ctx.state;
  sendReply(ctx, {
    status: 401,
    headers: { "www-authenticate": 'Basic realm="switchyard operators", charset="UTF-8"' },
    body: { error: { type: "authentication_error", code: "missing_api_key", message: "Operators only.", requestId } },
  });
  return false;
}

/** Whether an `Authorization` header holds the operator's token, as Basic password or as bearer. */
function isOperator(header: string, adminToken: string): boolean {
  const [scheme = "", value = ""] = header.split(/ +/, 2);
  if (scheme.toLowerCase() === "bearer") return isSame(value, adminToken);
  if (scheme.toLowerCase() !== "basic") return false;
  const text = Buffer.from(value, "base64").toString("utf8");
  return isSame(text.slice(text.indexOf(":") + 1), adminToken);
}

/** Compares in a time that tells neither the length nor where the two differ. */
function isSame(a: string, b: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}
