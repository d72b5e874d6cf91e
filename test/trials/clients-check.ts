import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { runStack } from "../../scripts/start/run-stack.ts";
import { loadConfig } from "../../src/config/config.ts";
import { type Disposables, withDisposables } from "../../src/lib/disposables.ts";
import { startFakeProvider } from "../support/fake-provider/server.ts";
import { checkClient } from "./clients/check-client.ts";
import { installClients, NoClients } from "./clients/install.ts";
import { startRefusingProxy } from "./clients/refusing-proxy.ts";

/** The headings of `docs/clients.md`. */
const clients = ["Codex CLI", "Claude Code", "opencode"] as const;
/** Enough for the work, and less than a model's whole window costs: what a client sends must not set that aside. */
const BUDGET_USD = 2;
/** One model for each wire: OpenAI's Responses, Anthropic's Messages, and Chat Completions. */
const models = ["gpt-5.6-terra", "claude-sonnet-5-5", "small"] as const;

/**
 * `npm run clients-check`: coding agents, as npm has them and set up as docs/clients.md says, each edit a file through a
 * Switchyard whose models are scripted. Exit code 0 when each did, and its use is in `/usage`; 1 when not; 2 when the clients
 * cannot be had.
 */
const program = new Command("clients-check")
  .description("let Codex CLI, Claude Code and opencode edit a file through Switchyard")
  .option("--only <names...>", "these clients only, by the headings of docs/clients.md")
  .option("--verbose", "print what each client printed")
  .parse();
const { only, verbose = false } = program.opts<{ only?: string[]; verbose?: boolean }>();

try {
  process.exitCode = (await withDisposables(check)) ? 0 : 1;
} catch (error) {
  console.error(error instanceof NoClients ? error.message : error);
  process.exitCode = error instanceof NoClients ? 2 : 1;
}

async function setBudget({ url, apiKey }: { url: string; apiKey: string }, limitUsd: number): Promise<void> {
  const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" };
  const response = await fetch(`${url}/budget`, { method: "PUT", headers, body: JSON.stringify({ limitUsd }) });
  if (!response.ok) throw new Error(`/budget answered ${response.status}: ${await response.text()}`);
}

async function check(disposables: Disposables): Promise<boolean> {
  const bin = await installClients();
  const scratch = await mkdtemp(join(tmpdir(), "switchyard-clients-"));
  disposables.add(() => rm(scratch, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 }));
  const upstream = await startFakeProvider();
  disposables.add(() => upstream.close());
  const proxy = await startRefusingProxy();
  disposables.add(() => proxy.close());
  const config = loadConfig({ ...process.env, DATA_DIR: join(scratch, "data"), PORT: "0", WORKERS: "1" });
  const stack = await runStack(config, {
    say: () => undefined,
    env: {
      PORT: "0",
      WORKERS: "1",
      EDGE_BASE_URL: upstream.url,
      EDGE_MODEL: "small",
      OPENAI_BASE_URL: upstream.url,
      OPENAI_API_KEY: "sk-clients-check-0123456789",
      ANTHROPIC_BASE_URL: upstream.origin,
      ANTHROPIC_API_KEY: "sk-ant-clients-check-0123456789",
    },
  });
  disposables.add(() => stack.close());
  await setBudget(stack, BUDGET_USD);
  let isWhole = true;
  for (const name of only ?? clients) {
    for (const model of models) {
      const { problems, seconds, requests, output } = await checkClient({
        name,
        model,
        bin,
        scratch,
        stack,
        upstream,
        proxyUrl: proxy.url,
      });
      const hosts = proxy.takeHosts();
      const wanted = hosts.length > 0 ? `; refused: ${hosts.join(", ")}` : "";
      const figures = `${seconds.toFixed(1)} s, ${requests} calls${wanted}`;
      console.log(`${problems.length === 0 ? "ok    " : "BROKEN"}  ${name}, ${model}: ${figures}`);
      for (const problem of problems) console.log(`        ${problem}`);
      if (verbose || problems.length > 0) console.log(output.replaceAll(/^/gm, "        | "));
      isWhole &&= problems.length === 0;
    }
  }
  await disposables.close();
  return isWhole;
}
