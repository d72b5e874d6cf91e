import { expect } from "chai";
import { allRoutes } from "../../api/all-routes.ts";
import { isForTenants } from "../../api/route.ts";
import { makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const changing = allRoutes.filter(({ method, auth }) => method !== "get" && isForTenants(auth));

describe("a browser's session", () => {
  let test: TestPlatform;
  before(async () => {
    test = await startPlatform({ workers: false });
  });
  after(() => test.close());

  const client = (key?: string) => makeClient({ url: test.url, key });
  const open = async (key: string, headers: Record<string, string> = {}) => {
    const opened = await client(key).post("/session", undefined, { headers: { origin: test.url, ...headers } });
    expect(opened.status).to.equal(201);
    const setCookie = opened.headers.get("set-cookie") ?? "";
    return { opened, setCookie, cookie: setCookie.split(";", 1)[0] ?? "" };
  };
  const makeKey = async () => {
    const made = await client(test.keys.owner).post("/keys", { role: "admin", subject: "ana@acme.io" });
    return { key: made.string("key"), keyId: made.string("keyId") };
  };

  it("stands for the key, whose holder GET /me names", async () => {
    const { cookie, setCookie, opened } = await open(test.keys.member);
    expect(setCookie).to.match(/^switchyard=[0-9A-Za-z]{32}; Path=\/; Expires=[^;]+; HttpOnly; SameSite=Strict$/);
    expect(opened.text).not.to.contain(cookie.split("=")[1]);
    const lastsMs = Date.parse(opened.string("expiresAt")) - Date.now();
    expect(lastsMs).to.be.within(11.9 * 3_600_000, 12 * 3_600_000);
    const me = await client().get("/me", { headers: { cookie } });
    expect(me.body).to.deep.include({ subject: "member@test", role: "member", tenantName: "first" });
    expect(me.at("tenantId")).to.equal((await client(test.keys.owner).get("/me")).at("tenantId"));
  });

  it("is a secure cookie of this host alone over https, and a plain one does not count there", async () => {
    const { cookie, setCookie } = await open(test.keys.member, { origin: "https://switchyard.example" });
    expect(setCookie).to.match(/^__Host-switchyard=\w+; Path=\/; .*HttpOnly; SameSite=Strict; Secure$/);
    const https = { "x-forwarded-proto": "https" };
    expect((await client().get("/me", { headers: { cookie, ...https } })).status).to.equal(200);
    const planted = (await open(test.keys.stranger)).cookie;
    const both = { cookie: `${planted}; ${cookie}` };
    expect((await client().get("/me", { headers: both })).at("tenantName")).to.equal("first");
    expect((await client().get("/me", { headers: { cookie: planted, ...https } })).status).to.equal(401);
  });

  it("makes keys that last as long as the key's own would, and not as short as the session", async () => {
    const headers = { cookie: (await open(test.keys.owner)).cookie, origin: test.url };
    const made = await client().post("/keys", {}, { headers });
    expect([made.status, made.at("expiresAt")]).to.deep.equal([201, undefined]);
  });

  it("has exactly the rights of the key's role", async () => {
    const headers = { cookie: (await open(test.keys.member)).cookie, origin: test.url };
    expect((await client().get("/jobs", { headers })).status).to.equal(200);
    const refused = await client().post("/keys", {}, { headers });
    expect([refused.status, refused.at("error.code")]).to.deep.equal([403, "insufficient_role"]);
  });

  it("ends by sign-out, after which its cookie opens nothing", async () => {
    const headers = { cookie: (await open(test.keys.member)).cookie, origin: test.url };
    const closed = await client().delete("/session", { headers });
    expect([closed.status, closed.headers.get("set-cookie")]).to.deep.equal([
      204,
      "switchyard=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict",
    ]);
    const replayed = await client().get("/me", { headers });
    expect([replayed.status, replayed.at("error.code")]).to.deep.equal([401, "invalid_api_key"]);
  });

  it("ends with its key", async () => {
    const { key, keyId } = await makeKey();
    const headers = { cookie: (await open(key)).cookie };
    expect((await client().get("/me", { headers })).status).to.equal(200);
    await client(test.keys.owner).delete(`/keys/${keyId}`);
    expect((await client().get("/me", { headers })).status).to.equal(401);
  });

  it("gets a new token even if the browser had a cookie, whose session then ends", async () => {
    const planted = (await open(test.keys.stranger)).cookie;
    const own = await open(test.keys.member, { cookie: planted });
    expect(own.cookie).not.to.equal(planted);
    expect((await client().get("/me", { headers: { cookie: planted } })).status).to.equal(401);
    const chosen = `switchyard=${"a".repeat(32)}`;
    expect((await open(test.keys.member, { cookie: chosen })).cookie).not.to.equal(chosen);
    expect((await client().get("/me", { headers: { cookie: chosen } })).status).to.equal(401);
  });

  it("opens no other session, and its token is no key", async () => {
    const { cookie } = await open(test.keys.member);
    const again = await client().post("/session", undefined, { headers: { cookie, origin: test.url } });
    expect([again.status, again.at("error.code")]).to.deep.equal([403, "insufficient_scope"]);
    expect((await client(cookie.split("=")[1]).get("/me")).status).to.equal(401);
  });

  it("is one of up to 20 of its key: beyond that the oldest ends", async () => {
    const { key } = await makeKey();
    const cookies: string[] = [];
    for (let n = 0; n < 21; n += 1) cookies.push((await open(key)).cookie);
    const [first, second] = await Promise.all(
      cookies.slice(0, 2).map((cookie) => client().get("/me", { headers: { cookie } })),
    );
    expect([first?.status, second?.status]).to.deep.equal([401, 200]);
  });

  it("is not opened by a widget key, and is read from no other cookie", async () => {
    const widget = await client(test.keys.owner).post("/ai/widget/key", {});
    const refused = await client(widget.string("key")).post("/session");
    expect([refused.status, refused.at("error.code")]).to.deep.equal([403, "insufficient_scope"]);
    const token = (await open(test.keys.member)).cookie.split("=")[1];
    expect((await client().get("/me", { headers: { cookie: `other=${token}` } })).status).to.equal(401);
  });

  describe("from another site", () => {
    let cookie: string;
    before(async () => {
      cookie = (await open(test.keys.owner)).cookie;
    });

    it("is refused on every operation that changes something, as the OpenAPI document lists them", async () => {
      const { body } = await client().get("/openapi.json");
      const { paths } = body as { paths: Record<string, Record<string, { security?: unknown[] }>> }; // OpenAPI's form
      const documented = Object.entries(paths).flatMap(
        ([path, methods]) =>
          Object.entries(methods)
            .filter(([method, { security }]) => method !== "get" && security?.length !== 0)
            .map(([method]) => `${method} ${path}`)
            .filter((operation) => !operation.includes(" /operator/")), // whose session is another one
      );
      const tried = changing.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, "{$1}")}`);
      expect(tried).to.have.members(documented);
      expect(documented.length).to.be.above(40);
    });

    for (const { method, path } of changing) {
      it(`cannot ${method.toUpperCase()} ${path}`, async () => {
        const other = new URL(test.url);
        other.port = "1";
        for (const origin of [undefined, "http://evil.example", "null", other.origin, `${test.url}.evil.example`]) {
          const headers = { cookie, "content-type": "application/json", ...(origin === undefined ? {} : { origin }) };
          const target = path.replace(/:\w+/g, "x");
          // A body that is read would be refused as malformed.
          const refused = await client().request(method.toUpperCase(), target, { raw: "{", headers });
          expect([refused.status, refused.text], `${origin}`).to.satisfy(
            ([status, text]: [number, string]) => status === 403 && /session|Origin/.test(text),
          );
        }
      });
    }

    it("reads nothing if the browser names another site", async () => {
      for (const site of ["cross-site", "same-site"]) {
        const headers = { cookie, "sec-fetch-site": site };
        expect((await client().get("/me", { headers })).at("error.code")).to.equal("foreign_origin");
      }
    });

    it("may still use a key, which no browser sends by itself", async () => {
      const headers = { cookie, origin: "https://evil.example" };
      const made = await client(test.keys.owner).post("/keys", {}, { headers });
      expect(made.status).to.equal(201);
    });
  });
});
