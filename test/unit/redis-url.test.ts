import { expect } from "chai";
import { loadConfig } from "../../src/config/config.ts";
import { readRedisUrl } from "../../src/store/redis/redis-url.ts";

describe("the URL of Redis", () => {
  it("leaves a single server to the client, whatever its form", () => {
    for (const [url, host] of [
      ["redis://127.0.0.1:6379", "127.0.0.1:6379"],
      ["rediss://user:p%40ss@redis.internal/2?family=6", "redis.internal"],
      ["/run/redis.sock?password=x", "/run/redis.sock"],
      ["unix:///run/redis.sock", "unix:///run/redis.sock"],
    ] as const) {
      expect(readRedisUrl(url, false), url).to.deep.equal({ kind: "server", url, host });
    }
  });

  it("names Sentinels, their primary, and the credentials of both", () => {
    const url = "rediss+sentinel://user:p%40s+s@one:26380,[::1],two/my%20primary/3?sentinelPassword=a%26b";
    expect(readRedisUrl(url, false)).to.deep.equal({
      kind: "sentinel",
      host: "one:26380,[::1],two",
      hosts: [
        { host: "one", port: 26_380 },
        { host: "::1", port: 26_379 },
        { host: "two", port: 26_379 },
      ],
      primary: "my primary",
      sentinel: { password: "a&b" },
      access: { username: "user", password: "p@s+s", db: 3, isTls: true },
    });
    expect(readRedisUrl("redis+sentinel://one/primary", false)).to.deep.include({
      sentinel: {},
      access: { db: 0, isTls: false },
    });
  });

  it("names some servers of a cluster", () => {
    expect(readRedisUrl("redis://:secret@one:7000,two:7001/", true)).to.deep.equal({
      kind: "cluster",
      host: "one:7000,two:7001",
      hosts: [
        { host: "one", port: 7_000 },
        { host: "two", port: 7_001 },
      ],
      access: { password: "secret", db: 0, isTls: false },
    });
  });

  it("is refused with the reason when it does not fit", () => {
    const refusal = (env: Record<string, string>) => {
      try {
        return String(loadConfig(env).redis.url);
      } catch (error) {
        return error instanceof Error ? error.message : String(error);
      }
    };
    const form = "REDIS_URL: must be a URL, as redis://127.0.0.1:6379 or redis+sentinel://host-a,host-b/primary";
    for (const url of [
      "localhost",
      "redis://",
      "redis+sentinel://one",
      "redis+sentinel://one/primary/x",
      "redis://a:0,b",
    ])
      expect(refusal({ REDIS_URL: url }), url).to.contain(form);
    expect(refusal({ REDIS_URL: "redis://a,b" })).to.contain("needs REDIS_CLUSTER=true");
    expect(refusal({ REDIS_CLUSTER: "true" })).to.contain("REDIS_CLUSTER: needs REDIS_URL");
    for (const url of ["redis://a/1", "/run/redis.sock", "redis+sentinel://one/primary"])
      expect(refusal({ REDIS_URL: url, REDIS_CLUSTER: "true" }), url).to.contain("no database but 0");
  });
});
