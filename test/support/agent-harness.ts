import type { Platform } from "../../src/platform.ts";
import { type AgentUpstream, startAgentUpstream } from "./agent-upstream.ts";
import { type ApiClient, makeClient } from "./http-client.ts";
import { startPlatform } from "./start-platform.ts";
import { startToolServer, type ToolServer } from "./tool-server.ts";

/** A platform whose agents think with a scripted model, `model`, and may call the sites of a tool server. */
export type AgentHarness = {
  upstream: AgentUpstream;
  site: ToolServer;
  member: ApiClient;
  admin: ApiClient;
  /** Of another tenant. */
  stranger: ApiClient;
  url: string;
  /** The key of `member`. */
  key: string;
  platform: Platform;
  /** The settings of a further process. */
  env: Record<string, string>;
  model: string;
  close(): Promise<void>;
};

/** With `workers: false` the test starts those that it needs. */
export async function openAgentHarness(
  env: Record<string, string> = {},
  { workers = true }: { workers?: boolean } = {},
): Promise<AgentHarness> {
  const [upstream, site] = await Promise.all([startAgentUpstream(), startToolServer()]);
  const test = await startPlatform({
    workers,
    env: {
      OPENAI_API_KEY: "sk-test",
      OPENAI_BASE_URL: upstream.url,
      PROVIDER_MAX_ATTEMPTS: "1",
      FETCH_ALLOW_ORIGINS: site.origin,
      ...env,
    },
  });
  const { url, keys } = test;
  const clientOf = (key: string) => makeClient({ url, key });
  const close = async () => {
    await test.close();
    await upstream.close();
    await site.close();
  };
  const clients = { member: clientOf(keys.member), admin: clientOf(keys.admin), stranger: clientOf(keys.stranger) };
  const about = { url, key: keys.member, platform: test.platform, env: test.env, model: "gpt-5.4-mini" };
  return { upstream, site, ...clients, ...about, close };
}
