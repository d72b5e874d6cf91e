import { withDisposables } from "../../src/lib/disposables.ts";
import type { Behaviour } from "./fake-provider/behaviour.ts";
import { type FakeProvider, startFakeProvider } from "./fake-provider/server.ts";
import type { WireRequest } from "./fake-provider/wire-format.ts";
import { makeClient } from "./http-client.ts";
import { startPlatform, type TestPlatform } from "./start-platform.ts";

/** One model of each kind of provider, for suites that hold clients against all of them. */
export const weatherModels = {
  "OpenAI's wire": "gpt-6-luna",
  "a custom provider of the chat wire": "lab/small",
  "Anthropic's wire": "claude-haiku-5-5",
  "the offline model": "switchyard-offline",
} as const;
export const offline = weatherModels["the offline model"];
export const question = "How is the weather in Graz?";
/** What the tool `weather` says. */
export const reported = "The weather in Graz is rain of strength 7431.";

/** A model that calls the tool once where it is offered, and repeats what that returned. */
function play(body: WireRequest): Behaviour {
  if (JSON.stringify(body).includes("7431")) return { pieces: ["It says: ", reported] };
  if (!JSON.stringify(body.tools ?? []).includes('"weather"')) return { pieces: ["No ", "tool."] };
  return { pieces: [], toolCalls: [{ id: "call_1", name: "weather", arguments: '{"town":"Graz"}' }] };
}

export type WeatherPlatform = { upstream: FakeProvider; test: TestPlatform; close(): Promise<void> };

/** Starts a platform with `weatherModels`, all but the offline one served by a fake provider that calls `weather`. */
export function startWeatherPlatform(): Promise<WeatherPlatform> {
  return withDisposables(async (disposables) => {
    const upstream = await startFakeProvider();
    disposables.add(() => upstream.close());
    upstream.setDefault(play);
    const test = await startPlatform({
      workers: false,
      env: {
        OPENAI_API_KEY: "sk-platform-openai-0123456789",
        OPENAI_BASE_URL: upstream.url,
        ANTHROPIC_API_KEY: "sk-ant-platform-0123456789",
        ANTHROPIC_BASE_URL: upstream.origin,
        FETCH_ALLOW_ORIGINS: upstream.origin,
      },
    });
    disposables.add(() => test.close());
    const admin = makeClient({ url: test.url, key: test.keys.admin });
    const model = { id: "small", type: "chat", contextWindow: 32_000, inputUsdPerMTok: 1, outputUsdPerMTok: 2 };
    const lab = { baseUrl: upstream.url, key: "sk-lab-0123456789", wire: "openai-chat", models: [model] };
    const set = await admin.request("PUT", "/ai/providers/custom/lab", { body: lab });
    if (set.status !== 200) throw new Error(set.text);
    return { upstream, test, close: disposables.close };
  });
}
