import { withDisposables } from "../../src/lib/disposables.ts";
import { type FakeProvider, startFakeProvider } from "./fake-provider/server.ts";
import { type ApiClient, makeClient } from "./http-client.ts";
import { startPlatform, type TestOptions, type TestPlatform } from "./start-platform.ts";

export type ProviderPlatform = {
  /** What stands for every provider, in the wire format of each. */
  upstream: FakeProvider;
  test: TestPlatform;
  /** A member's. */
  client: ApiClient;
  close(): Promise<void>;
};

/** Starts a platform whose models are served by one fake provider. `envOf`: the settings that point at it. */
export function startProviderPlatform(
  envOf: (upstream: FakeProvider) => Record<string, string>,
  options: Omit<TestOptions, "env"> = {},
): Promise<ProviderPlatform> {
  return withDisposables(async (disposables) => {
    const upstream = await startFakeProvider();
    disposables.add(() => upstream.close());
    const test = await startPlatform({ ...options, env: envOf(upstream) });
    disposables.add(() => test.close());
    const client = makeClient({ url: test.url, key: test.keys.member });
    return { upstream, test, client, close: disposables.close };
  });
}
