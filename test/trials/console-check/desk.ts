import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runStack } from "../../../scripts/start/run-stack.ts";
import { loadConfig } from "../../../src/config/config.ts";
import type { Disposables } from "../../../src/lib/disposables.ts";
import { type FakeProvider, startFakeProvider } from "../../support/fake-provider/server.ts";
import { type ApiClient, makeApiClient } from "./api-client.ts";

/** A platform on a data folder of its own, with a provider of the tenant's own, whose answers this program gives. */
export type Desk = {
  dataDir: string;
  url: string;
  apiKey: string;
  adminToken: string;
  provider: FakeProvider;
  call: ApiClient;
};

export async function openDesk(disposables: Disposables): Promise<Desk> {
  const dataDir = await mkdtemp(join(tmpdir(), "switchyard-console-"));
  disposables.add(() => rm(dataDir, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 }));
  const provider = await startFakeProvider();
  disposables.add(() => provider.close());
  const config = loadConfig({ ...process.env, DATA_DIR: dataDir, PORT: "0", WORKERS: "1" });
  // A machine that does much else makes the check slow, not wrong: the store's patience is not what it looks at.
  const patience = { STORE_TIMEOUT_MS: "60000", LOG_LEVEL: "error" };
  const env = { PORT: "0", RATE_LIMIT_RPM: "100000", FETCH_ALLOW_ORIGINS: provider.origin, ...patience };
  const stack = await runStack(config, { say: () => undefined, env });
  disposables.add(() => stack.close());
  const { url, apiKey, adminToken } = stack;
  const call = makeApiClient(url, apiKey);
  await setProvider(call, provider);
  return { dataDir, url, apiKey, adminToken, provider, call };
}

/** The model `desk/large`, at prices. */
async function setProvider(call: ApiClient, provider: FakeProvider): Promise<void> {
  const model = { id: "large", type: "chat", contextWindow: 100_000, inputUsdPerMTok: 2, outputUsdPerMTok: 6 };
  const body = { baseUrl: provider.url, key: "needs-none", wire: "openai-chat", models: [model] };
  await call("PUT", "/ai/providers/custom/desk", { body });
}
