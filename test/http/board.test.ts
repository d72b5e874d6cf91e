import { expect } from "chai";
import { boardPath } from "../../api/operator-pages.ts";
import { queues as productQueues } from "../../src/jobs/queues.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const TOKEN = "the-operators-own-token";

describe("Bull Board", () => {
  let platform: TestPlatform;
  before(async () => {
    platform = await startPlatform({ workers: false, env: { ADMIN_TOKEN: TOKEN, BOARD_WRITES: "true" } });
  });
  after(() => platform.close());

  const basic = (password: string) => `Basic ${Buffer.from(`operator:${password}`).toString("base64")}`;
  const open = (path: string, authorization?: string, init: RequestInit = {}) =>
    fetch(`${platform.url}${boardPath}${path}`, {
      ...init,
      headers: { ...init.headers, ...(authorization ? { authorization } : {}) },
      redirect: "manual",
    });

  it("asks a browser for the password", async () => {
    for (const path of ["", "/", "/api/queues", "/static/css/x.css"]) {
      const response = await open(path);
      expect(response.status, path).to.equal(401);
      expect(response.headers.get("www-authenticate"), path).to.match(/^Basic /);
    }
  });

  it("opens to the operator's token only, never to a tenant's key", async () => {
    const { keys } = platform;
    for (const wrong of [
      basic("wrong"),
      basic(""),
      basic(keys.owner),
      `Bearer ${keys.owner}`,
      `Bearer ${TOKEN}x`,
      `Bearer ${TOKEN.slice(0, -1)}`,
      `Basic ${TOKEN}`,
      "Basic %%%",
    ]) {
      expect((await open("/api/queues", wrong)).status, wrong).to.equal(401);
    }
    expect((await open("/api/queues", basic(TOKEN))).status).to.equal(200);
    expect((await open("/api/queues", `Bearer ${TOKEN}`)).status).to.equal(200);
  });

  it("shows the product's queues", async () => {
    const response = await open("/api/queues", basic(TOKEN));
    const { queues } = (await response.json()) as { queues: { name: string }[] };
    expect(queues.map(({ name }) => name)).to.have.members(Object.values(productQueues).map(({ name }) => name));
  });

  it("gives a browser a page whose scripts and styles its policy lets it load", async () => {
    const page = await open("", basic(TOKEN));
    const html = await page.text();
    expect(page.status).to.equal(200);
    expect(page.headers.get("content-security-policy")).to.contain("default-src 'self'");
    const files = [...html.matchAll(/(?:src|href)="(static\/[^"]+\.(?:js|css))"/g)].map((match) => match[1]);
    expect(files).to.have.length.above(1);
    for (const file of files) {
      const response = await open(`/${file}`, basic(TOKEN));
      expect(response.status, file).to.equal(200);
      expect(response.headers.get("content-type"), file).to.match(file?.endsWith(".js") ? /javascript/ : /css/);
      await response.arrayBuffer();
    }
  });

  it("does not let another site use the browser's password", async () => {
    const pause = (site: string) =>
      open("/api/queues/ingestion/pause", basic(TOKEN), { method: "PUT", headers: { "sec-fetch-site": site } });
    expect((await pause("cross-site")).status).to.equal(403);
    expect((await pause("same-site")).status).to.equal(403);
    // Over plain http a browser sends no Sec-Fetch-Site, but the Origin.
    for (const [origin, status] of [
      ["https://evil.example", 403],
      ["null", 403],
      [platform.url, 200],
    ] as const) {
      const headers = { origin };
      const paused = await open("/api/queues/ingestion/pause", basic(TOKEN), { method: "PUT", headers });
      expect(paused.status, origin).to.equal(status);
    }
  });

  it("only shows, unless the operator lets it write", async () => {
    const reading = await startPlatform({ workers: false, env: { ADMIN_TOKEN: TOKEN } });
    try {
      const headers = { authorization: basic(TOKEN), origin: reading.url };
      const board = `${reading.url}${boardPath}/api/queues`;
      const paused = await fetch(`${board}/ingestion/pause`, { method: "PUT", headers });
      expect(paused.status).to.be.within(400, 499);
      const { queues } = (await (await fetch(board, { headers })).json()) as { queues: { isPaused: boolean }[] };
      expect(queues.some(({ isPaused }) => isPaused)).to.equal(false);
    } finally {
      await reading.close();
    }
  });

  it("is a 404 without a token", async () => {
    const without = await startPlatform({ workers: false, env: { ADMIN_TOKEN: "" } });
    try {
      expect((await fetch(`${without.url}${boardPath}`)).status).to.equal(404);
    } finally {
      await without.close();
    }
  });
});
