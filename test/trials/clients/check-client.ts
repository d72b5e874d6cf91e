import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { LocalStack } from "../../../scripts/start/run-stack.ts";
import type { FakeProvider } from "../../support/fake-provider/server.ts";
import { readSetup } from "./read-setup.ts";
import { runClient } from "./run-client.ts";
import { makeScriptedModel, type Task, toReport, toSettings } from "./scripted-model.ts";

/** Wait for the ledger, in ms: a call is counted within 50 of its end. */
const LEDGER_TIMEOUT_MS = 5_000;
const LEDGER_EVERY_MS = 50;

type Usage = { requests: number; inputTokens: number; outputTokens: number };
export type Checked = { problems: string[]; seconds: number; requests: number; output: string };

/** Lets one client edit a file by one model, with a key of its own, and looks at what is left of it everywhere. */
export async function checkClient(options: {
  /** Its heading in `docs/clients.md`. */
  name: string;
  model: string;
  bin: string;
  scratch: string;
  stack: Pick<LocalStack, "url" | "apiKey">;
  upstream: FakeProvider;
  proxyUrl: string;
}): Promise<Checked> {
  const { name, model, bin, scratch, stack, upstream, proxyUrl } = options;
  const call = async <T>(path: string, body?: object): Promise<T> => {
    const headers = { authorization: `Bearer ${stack.apiKey}`, "content-type": "application/json" };
    const init = body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
    const response = await fetch(`${stack.url}${path}`, init);
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
    return (await response.json()) as T; // our own API, which its tests hold to its schemas
  };
  const { key, keyId } = await call<{ key: string; keyId: string }>("/keys", { role: "member", name });
  await mkdir(scratch, { recursive: true });
  const folder = await mkdtemp(join(scratch, "run-"));
  const task: Task = { path: join(folder, "project", "settings.txt"), serial: `P${randomBytes(4).toString("hex")}` };
  upstream.reset();
  upstream.setDefault(makeScriptedModel(task));
  const setup = await readSetup(name, { url: stack.url, model });
  const { output, edited, seconds } = await runClient({ folder, setup, task, bin, key, proxyUrl });

  const served: Usage = upstream.served();
  const usage = await pollUsage(served, async () => {
    const { data } = await call<{ data: ({ key: string } & Usage)[] }>("/usage?groupBy=key");
    return data.find((row) => row.key === keyId);
  });
  const problems: string[] = [];
  if (edited !== toSettings(task, "1.5")) problems.push(`the file is not edited: ${JSON.stringify(edited)}`);
  if (!output.includes(toReport(task))) problems.push("the report of the model was not printed");
  if (served.requests < 4) problems.push(`only ${served.requests} calls reached the model`);
  if (!isSame(usage, served))
    problems.push(`/usage has ${JSON.stringify(usage)}, and the model ${JSON.stringify(served)}`);
  return { problems, seconds, requests: served.requests, output };
}

/** The usage as soon as it is what the provider served, or what it is at last. */
async function pollUsage(served: Usage, read: () => Promise<Usage | undefined>): Promise<Usage | undefined> {
  const until = performance.now() + LEDGER_TIMEOUT_MS;
  for (;;) {
    const usage = await read();
    if (isSame(usage, served) || performance.now() > until) return usage;
    await delay(LEDGER_EVERY_MS);
  }
}

const isSame = (usage: Usage | undefined, served: Usage) =>
  usage?.requests === served.requests &&
  usage.inputTokens === served.inputTokens &&
  usage.outputTokens === served.outputTokens;
