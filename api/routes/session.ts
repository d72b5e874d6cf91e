import { z } from "zod";
import { AppError } from "../../src/lib/errors.ts";
import { idSchema } from "../../src/lib/ids.ts";
import type { Platform } from "../../src/platform.ts";
import { roles } from "../../src/store/key-store.ts";
import { isApiKey } from "../../src/tenancy/api-keys.ts";
import type { Caller } from "../../src/tenancy/roles.ts";
import { readKey } from "../middleware/authenticate.ts";
import { declareRoutes } from "../route.ts";
import { named } from "../schema-names.ts";
import { readSessionToken, sessionCookie } from "../session-cookie.ts";

const meSchema = named(
  "Me",
  z.object({
    tenantId: idSchema("tenant"),
    tenantName: z.string(),
    keyId: idSchema("apiKey"),
    subject: z.string().describe("Who acts by the key"),
    role: z.enum(roles),
  }),
);
const sessionSchema = named("Session", meSchema.extend({ expiresAt: z.iso.datetime() }));

const cookieHeader = { "Set-Cookie": "The session: `HttpOnly`, `SameSite=Strict`, and `Secure` over https" };

const routes = declareRoutes({ auth: "member", tags: ["Sessions"], bodyLimit: "settings" });

export const sessionRoutes = [
  routes.get("/me", {
    summary: "Who you are: your tenant, subject and role",
    responses: { 200: { description: "The caller", body: meSchema } },
    result: ({ caller, platform }) => describe(platform, caller),
  }),
  routes.post("/session", {
    summary: "Exchange a key for a session of a browser",
    description:
      "The response sets a cookie, which stands for the key for 12 hours: until you sign out or the key ends. A request by " +
      "cookie that changes something must come from a page of this service. A key has at most 20 sessions; a further one " +
      "ends the oldest.",
    hasSecretReply: true,
    responses: { 201: { description: "The session is open", body: sessionSchema, headers: cookieHeader } },
    async handler({ caller, platform, header }) {
      const key = readKey(header);
      if (key === undefined || !isApiKey(key)) {
        const other = key === undefined ? "another session" : "an access token";
        throw new AppError("insufficient_scope", `A session is opened by a key, not by ${other}.`);
      }
      const { sessions } = platform.tenancy;
      await sessions.close(readSessionToken(header) ?? "");
      const session = await sessions.open(caller, key);
      const body = { ...(await describe(platform, caller)), expiresAt: session.expiresAt.toISOString() };
      return { status: 201, body, headers: { "set-cookie": sessionCookie(header, session) } };
    },
  }),
  routes.delete("/session", {
    summary: "Sign out: end the session of the request's cookie",
    responses: { 204: { description: "It has ended", headers: { "Set-Cookie": "Removes the cookie" } } },
    async handler({ platform, header }) {
      await platform.tenancy.sessions.close(readSessionToken(header) ?? "");
      return { status: 204, headers: { "set-cookie": sessionCookie(header) } };
    },
  }),
];

async function describe({ tenancy }: Platform, { tenantId, keyId, subject, role }: Caller) {
  return { tenantId, tenantName: await tenancy.nameOf(tenantId), keyId, subject, role };
}
