import { setTimeout as delay } from "node:timers/promises";
import { seededRandom } from "../bench/measure.ts";
import { sownFor } from "./canaries.ts";
import type { ApiResponse } from "./client.ts";
import { ARRIVAL_STEP, ARRIVED } from "./composed.ts";
import { makeTickets, type Ticket, tenantsIn } from "./tickets.ts";
import { chatCall, type JobWorkName, jobWorks, refusedCalls, type Tenant } from "./work.ts";

/** Calls that a tenant makes at once, and jobs of it that may be open, so that the load waits for a platform that is slow. */
const LANES = 3;
const MAX_OPEN = 30;
/** Rest of a lane between two calls, from and to, in ms. */
const REST_MS = [20, 150] as const;
/** How often a tenant looks after its open jobs, in ms, and at how many of them. */
const LOOK_EVERY_MS = 500;
const LOOK_AT = 10;
/** Kinds of a lane's steps that are no jobs, by their shares. */
const CHAT_SHARE = 3;
const READ_SHARE = 3;
const REFUSED_SHARE = 2;

/** A job whose acceptance was reported to a client. `id` is the job's, or that of its document. */
export type Accepted = {
  work: JobWorkName;
  ticket: string;
  tenant: Tenant;
  id: string;
  /** The end that was reported to a client: it must never change. */
  end?: { status: string; finishedAt: string };
};

export type Load = {
  accepted: Accepted[];
  /** Answers of chats. */
  chats: { ticket: string; tenant: Tenant; text: string; logId: string }[];
  /** Texts that were sent with a value in them which guards mask or block. */
  sown: number;
  /** Calls that looked for another tenant's data. */
  reads: number;
  /** What a tenant saw of another's, and answers that no client should get. */
  breaches: string[];
};

/**
 * Loads the platform with the mixed work of all tenants until `until` aborts. Resolves when every call that was begun has
 * its answer, and every job that was accepted has ended, or `giveUp` aborts.
 */
export async function runLoad(options: {
  tenants: readonly Tenant[];
  seed: number;
  until: AbortSignal;
  giveUp: AbortSignal;
  load: Load;
  /** The kinds of work; with one alone nobody chats or searches besides. */
  works: readonly JobWorkName[];
  /** So many jobs, evenly over the time. */
  pace: { jobs: number; durationMs: number };
}): Promise<void> {
  const { tenants, until, giveUp, load, works, pace } = options;
  const startedAt = performance.now();
  const mayBegin = () => load.accepted.length < pace.jobs * ((performance.now() - startedAt) / pace.durationMs);
  await Promise.all(
    tenants.map(async (tenant) => {
      const nextTicket = makeTickets(tenant.number);
      const random = seededRandom(options.seed * 1_000 + tenant.number);
      const open = new Set<Accepted>();
      const deps: LaneDeps = { tenant, tenants, nextTicket, random, open, load, works, mayBegin };
      const lanes = Promise.all(Array.from({ length: LANES }, () => runLane(deps, until)));
      let haveLanesEnded = false;
      const ended = lanes.then(() => {
        haveLanesEnded = true;
      });
      await Promise.all([ended, follow(deps, () => giveUp.aborted || (haveLanesEnded && open.size === 0))]);
    }),
  );
}

type LaneDeps = {
  tenant: Tenant;
  tenants: readonly Tenant[];
  nextTicket: () => Ticket;
  random: () => number;
  open: Set<Accepted>;
  load: Load;
  works: readonly JobWorkName[];
  mayBegin(): boolean;
};

async function runLane(deps: LaneDeps, until: AbortSignal): Promise<void> {
  const { random, open, mayBegin } = deps;
  while (!until.aborted) {
    if (open.size < MAX_OPEN && mayBegin()) await takeStep(deps);
    const [from, to] = REST_MS;
    await delay(from + random() * (to - from));
  }
}

async function takeStep(deps: LaneDeps): Promise<void> {
  const { works } = deps;
  const isMixed = works.length > 1;
  const steps = [
    ...works.map((name) => ({ share: jobWorks[name].share, run: () => submit(deps, name) })),
    { share: isMixed ? CHAT_SHARE : 0, run: () => chat(deps) },
    { share: isMixed ? READ_SHARE : 0, run: () => read(deps) },
    { share: isMixed ? REFUSED_SHARE : 0, run: () => beRefused(deps) },
  ];
  let at = deps.random() * steps.reduce((sum, { share }) => sum + share, 0);
  for (const { share, run } of steps) {
    at -= share;
    if (at < 0) return run();
  }
}

const fieldOf = ({ body }: ApiResponse, name: string): string | undefined => {
  const value = typeof body === "object" && body !== null ? Reflect.get(body, name) : undefined;
  return typeof value === "string" ? value : undefined;
};
const describe = ({ status, body }: ApiResponse) => `${status} ${JSON.stringify(body ?? null).slice(0, 300)}`;

async function submit({ tenant, nextTicket, random, open, load }: LaneDeps, work: JobWorkName): Promise<void> {
  const ticket = nextTicket();
  const { path, ...call } = jobWorks[work].submit(ticket, tenant, random);
  if (sownFor(tenant.number) !== "") load.sown += 1;
  const response = await tenant.client.settle(path, { key: ticket.text, ...call });
  const jobId = fieldOf(response, "jobId");
  const id = jobId ?? fieldOf(response, "documentId");
  if (response.status >= 300 || id === undefined) {
    load.breaches.push(`${work} ${ticket.text} was not accepted: ${describe(response)}`);
    return;
  }
  const accepted: Accepted = { work, ticket: ticket.text, tenant, id };
  load.accepted.push(accepted);
  if (jobId !== undefined) open.add(accepted);
}

async function chat({ tenant, nextTicket, load }: LaneDeps): Promise<void> {
  const ticket = nextTicket();
  const { path, body } = chatCall(ticket);
  if (sownFor(tenant.number) !== "") load.sown += 1;
  const response = await tenant.client.settle(path, { key: ticket.text, body });
  const [text, logId] = [fieldOf(response, "text"), fieldOf(response, "logId")];
  if (text === undefined || logId === undefined) load.breaches.push(`chat ${ticket.text}: ${describe(response)}`);
  else load.chats.push({ ticket: ticket.text, tenant, text, logId });
}

/** Sends what the tenant's guards do not let through. */
async function beRefused({ tenant, nextTicket, random, load }: LaneDeps): Promise<void> {
  const ticket = nextTicket();
  const calls = refusedCalls(ticket, tenant);
  const call = calls[Math.floor(random() * calls.length)];
  if (call === undefined) return;
  load.sown += 1;
  const { path, ...options } = call;
  const response = await tenant.client.settle(path, { key: ticket.text, ...options });
  const isRefused = response.status === 422 || response.status === 0 || response.status >= 500;
  if (!isRefused) load.breaches.push(`${path} ${ticket.text} was not refused: ${describe(response)}`);
}

/** Asks for what another tenant has: by words that stand in its documents alone, and by the id of its job. */
async function read({ tenant, tenants, random, load }: LaneDeps): Promise<void> {
  load.reads += 1;
  const others = tenants.filter((one) => one !== tenant);
  const other = others[Math.floor(random() * others.length)];
  const query = `customer ${other?.number ?? tenant.number} asked about valve t${other?.number ?? tenant.number}w1`;
  const found = await tenant.client.call("POST", "/rag/query", { body: { query, topK: 10 } });
  const seen = tenantsIn(JSON.stringify(found.body ?? ""));
  seen.delete(String(tenant.number));
  if (seen.size > 0 && found.status === 200) load.breaches.push(`tenant ${tenant.number} found: ${describe(found)}`);
  const foreign = load.accepted.findLast((one) => one.tenant === other && one.id.startsWith("job_"));
  if (!foreign) return;
  const job = await tenant.client.call("GET", `/jobs/${foreign.id}`);
  const isHidden = job.status === 404 || job.status === 0 || job.status >= 500;
  if (!isHidden) load.breaches.push(`tenant ${tenant.number} was shown a job of another: ${describe(job)}`);
}

/** Agrees to whatever waits for a decision. One that was made and whose answer was lost is no news: then it waits no more. */
async function approve({ client }: Tenant): Promise<void> {
  const { body } = await client.call("GET", "/workflows/approvals?limit=20");
  const { data = [] } = Object(body) as { data?: { approvalId: string }[] };
  for (const { approvalId } of data) {
    await client.call("POST", `/workflows/approvals/${approvalId}/decide`, { body: { decision: "approved" } });
  }
}

/** Reports the event that a run waits for: once, by its ticket, however often it is reported. */
async function reportArrival({ client, composedId }: Tenant, { ticket }: Accepted, runId: string): Promise<void> {
  const run = await client.call("GET", `/workflows/${composedId}/runs/${runId}`);
  const { steps = [] } = Object(run.body) as { steps?: { id: string; status: string }[] };
  if (!steps.some(({ id, status }) => id === ARRIVAL_STEP && status === "waiting")) return;
  await client.call("POST", `/events/${ARRIVED}`, { body: { id: ticket, data: { ticket } } });
}

/** Looks after the open jobs of a tenant, the oldest first, as a client that polls does. */
async function follow({ tenant, open }: LaneDeps, hasEnded: () => boolean): Promise<void> {
  while (!hasEnded()) {
    await approve(tenant);
    for (const accepted of [...open].slice(0, LOOK_AT)) {
      const response = await tenant.client.call("GET", `/jobs/${accepted.id}`);
      const finishedAt = fieldOf(response, "finishedAt");
      open.delete(accepted); // to its end, when it has not ended
      const { runId } = Object(Object(response.body).about) as { runId?: string };
      if (accepted.work === "composed" && fieldOf(response, "status") === "awaiting" && runId !== undefined)
        await reportArrival(tenant, accepted, runId);
      if (finishedAt === undefined) open.add(accepted);
      else accepted.end = { status: fieldOf(response, "status") ?? "", finishedAt };
    }
    await delay(LOOK_EVERY_MS);
  }
}
