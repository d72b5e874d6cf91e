import { expect } from "chai";
import { queues } from "../../src/jobs/queues.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type HostProcess, startProcess } from "../support/processes.ts";
import { type Scrape, scrape } from "../support/prometheus.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const TOKEN = "the-operators-own-token";
const question = { messages: [{ role: "user", content: "What are you?" }] };

describe("metrics", () => {
  let platform: TestPlatform;
  let owner: ApiClient;
  before(async () => {
    platform = await startPlatform({ env: { ADMIN_TOKEN: TOKEN } });
    owner = makeClient({ url: platform.url, key: platform.keys.owner });
  });
  after(() => platform.close());

  const scrapeApi = () => scrape(`${platform.url}/metrics`, TOKEN);

  it("are served to the operator only", async () => {
    const { keys } = platform;
    const ask = (headers: Record<string, string>) => fetch(`${platform.url}/metrics`, { headers });
    expect((await ask({})).status).to.equal(401);
    expect((await ask({ authorization: `Bearer ${keys.owner}` })).status).to.equal(401);
    const basic = Buffer.from(`prometheus:${TOKEN}`).toString("base64");
    const headers = { authorization: `Basic ${basic}` };
    expect((await ask(headers)).status).to.equal(200);
    expect((await fetch(`${platform.url}/metrics`, { method: "POST", headers })).status).to.equal(405);
  });

  it("count requests by the pattern of their route", async () => {
    const before = await scrapeApi();
    await owner.get("/jobs/job_01M7XR2W2C3EJZ25XEJQCM9JX4");
    await owner.get("/jobs/job_01M7XR2W2C3EJZ25XEJQCM9JX5");
    await owner.get("/there/is/nothing");
    const after = await pollUntil(async () => {
      const now = await scrapeApi();
      return countOf(now, { route: "none" }) > countOf(before, { route: "none" }) ? now : undefined;
    });
    const labels = { method: "GET", route: "/jobs/:id", status: "404" };
    expect(countOf(after, labels) - countOf(before, labels)).to.equal(2);
    expect(after.sum("switchyard_http_requests_in_flight")).to.be.within(1, 3); // the scrape itself is one
  });

  it("count a chat's call, tokens and cost, and one from the cache as such", async () => {
    const before = await scrapeApi();
    const chat = await owner.post("/ai/chat", { ...question, temperature: 0 });
    await owner.post("/ai/chat", { ...question, temperature: 0 });
    const after = await scrapeApi();
    const grown = (name: string, labels: Record<string, string>) => after.sum(name, labels) - before.sum(name, labels);
    const calls = { provider: "edge", kind: "chat", outcome: "completed" };
    expect(grown("switchyard_gateway_calls_total", { ...calls, source: "provider" })).to.equal(1);
    expect(grown("switchyard_gateway_calls_total", { ...calls, source: "cache" })).to.equal(1);
    expect(grown("switchyard_gateway_call_duration_seconds_count", calls)).to.equal(1);
    const tokens = { provider: "edge", direction: "output" };
    expect(grown("switchyard_gateway_tokens_total", tokens)).to.equal(chat.at("outputTokens"));
    expect(after.sum("switchyard_gateway_breakers_open", { provider: "edge" })).to.equal(0);
  });

  it("count jobs by queue and outcome, and how long they waited and ran", async () => {
    const before = await scrapeApi();
    await owner.post("/rag/ingest", { title: "Walrus", content: "The walrus sleeps under the lighthouse." });
    const form = new FormData();
    form.set("file", new Blob(["%PDF-1.7 and no more"]), "broken.pdf");
    const bad = await owner.request("POST", "/rag/ingest", { raw: form });
    expect(bad.status).to.equal(422);
    const after = await scrapeApi();
    const grown = (name: string, labels: Record<string, string> = {}) =>
      after.sum(name, { queue: "ingestion", ...labels }) - before.sum(name, { queue: "ingestion", ...labels });
    expect(grown("switchyard_jobs_submitted_total")).to.equal(2);
    expect(grown("switchyard_job_wait_seconds_count")).to.equal(2);
    expect(grown("switchyard_job_duration_seconds_count", { outcome: "completed" })).to.equal(1);
    expect(grown("switchyard_job_duration_seconds_count", { outcome: "failed" })).to.equal(1);
  });

  it("report the state of every queue and part of the service", async () => {
    const { samples } = await scrapeApi();
    const names = Object.values(queues).map((queue) => queue.name);
    const labelled = (name: string, label: string) =>
      new Set(samples.filter((each) => each.name === name).map(({ labels }) => labels[label] ?? ""));
    expect([...labelled("switchyard_queue_jobs", "queue")]).to.have.members(names);
    expect([...labelled("switchyard_queue_jobs", "state")]).to.have.members(["waiting", "active", "delayed", "failed"]);
    expect([...labelled("switchyard_queue_oldest_waiting_seconds", "queue")]).to.have.members(names);
    const places = samples.filter(({ name }) => name === "switchyard_queue_places_per_worker");
    expect(Object.fromEntries(places.map(({ labels, value }) => [labels.queue, value]))).to.include({
      "agent-runs": 16,
    });
    const parts = ["store", "redis", "workers", "vectorIndex", "queueLag"];
    expect([...labelled("switchyard_part_up", "part")]).to.have.members(parts);
    const ups = samples.filter(({ name }) => name === "switchyard_part_up").map(({ value }) => value);
    expect(ups).to.deep.equal(parts.map(() => 1));
  });

  it("have names with units, types that fit them, and labels without ids, keys or texts", async () => {
    const { types, samples, text } = await scrapeApi();
    const own = [...types].filter(([name]) => name.startsWith("switchyard_"));
    expect(own).to.have.length.above(15);
    for (const [name, type] of own) {
      expect(name.endsWith("_total"), name).to.equal(type === "counter");
      if (type === "histogram") expect(name, name).to.match(/_seconds$/);
    }
    const known = ["method", "route", "status", "le", "queue", "outcome", "task", "state", "part"];
    const ofCalls = ["provider", "model", "kind", "source", "direction"];
    const labels = new Set(samples.flatMap(({ labels }) => Object.keys(labels)));
    expect([...known, ...ofCalls]).to.include.members([...labels]);
    expect(text).not.to.match(/\b[a-z]{2,4}_[0-9A-HJKMNP-TV-Z]{26}\b|\b[sp]k_|walrus|nowhere/i);
  });
});

const PASSES = "switchyard_maintenance_passes_total";

describe("the metrics of a worker", () => {
  let platform: TestPlatform;
  let worker: HostProcess;
  before(async () => {
    platform = await startPlatform({ workers: false, env: { ADMIN_TOKEN: "" } });
    worker = await startProcess("workers/main.ts", { ...platform.env, METRICS_PORT: "0", RECONCILE_EVERY_MS: "100" });
  });
  after(async () => {
    await worker?.stop();
    await platform.close();
  });

  it("are served at its own port, with those of its process", async () => {
    const url = String(worker.ready.metricsUrl);
    const owner = makeClient({ url: platform.url, key: platform.keys.owner });
    expect((await owner.post("/rag/ingest", { content: "A lease lasts 15 seconds." })).status).to.equal(201);
    const { sum, types } = await scrape(`${url}/metrics`);
    expect(sum("switchyard_job_duration_seconds_count", { queue: "ingestion", outcome: "completed" })).to.equal(1);
    expect(sum("process_resident_memory_bytes")).to.be.above(1e6);
    for (const task of ["reconcile", "callbacks"]) {
      const passes = async () => (await scrape(`${url}/metrics`)).sum(PASSES, { task, outcome: "completed" });
      await pollUntil(async () => (await passes()) > 0);
    }
    for (const name of [
      "nodejs_eventloop_lag_p99_seconds",
      "nodejs_gc_duration_seconds",
      "process_cpu_seconds_total",
    ]) {
      expect([...types.keys()]).to.include(name);
    }
    expect((await fetch(`${url}/healthz`)).status).to.equal(200);
    expect(await (await fetch(`${url}/readyz`)).json()).to.nested.include({
      status: "ready",
      "parts.redis.status": "up",
    });
    expect((await fetch(`${url}/jobs`)).status).to.equal(404);
    expect((await fetch(`${url}/metrics`, { method: "POST" })).status).to.equal(404);
  });

  it("are served nowhere else: the API has none without the operator's token", async () => {
    expect((await fetch(`${platform.url}/metrics`)).status).to.equal(404);
  });
});

function countOf({ sum }: Scrape, labels: Record<string, string>): number {
  return sum("switchyard_http_request_duration_seconds_count", labels);
}
