import { loadConfig } from "../src/config/config.ts";
import { ConfigError } from "../src/lib/errors.ts";
import { StartFailure } from "./start/children.ts";
import { warnOfNearSettings } from "./start/near-settings.ts";
import { runStack } from "./start/run-stack.ts";

/** How often this process checks that its parent lives, in ms. */
const LOOK_EVERY_MS = 300;

/**
 * npm and a shell stand between a signal and this process, and end without passing it on. So under npm it stops when its
 * parent has ended.
 */
function onParentGone(stop: () => void): void {
  if (process.env.npm_lifecycle_event === undefined) return;
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    stop();
  }, LOOK_EVERY_MS).unref();
}

/** `npm start`: everything on one machine, until Ctrl-C. Exit code 0 after a clean stop, 1 when a part does not start, 2 for wrong settings. */
async function start(): Promise<void> {
  process.umask(0o077); // what it and its processes write is for this user alone
  let stop = (): void => process.exit(1);
  onParentGone(() => stop());
  for (const warning of warnOfNearSettings(process.env)) console.error(warning);
  const config = loadConfig();
  const isEmbedded = config.mongo.url === undefined || config.redis.url === undefined;
  const stack = await runStack(config, { say: (text) => console.log(text) });
  const { url, apiKey } = stack;
  console.log(`
Switchyard is up.${isEmbedded ? " The embedded store is for one machine: see the README for Atlas and Redis." : ""}

  Console     ${url}, for browsers; sign in with the key
  API         ${url}, reference at /docs
  Key         ${apiKey}, owner of tenant default
  Operator    ${url}/console/operator
              password ${stack.adminToken}
  Bull Board  ${stack.boardUrl}
              any user, the operator's password
  Workers     ${stack.workers}
  Data        ${config.dataDir}

${stack.search}

Try:
  export URL=${url} KEY=${apiKey}
  curl $URL/rag/ingest -H "authorization: Bearer $KEY" -F file=@examples/manuals/pump-manual.md
  curl $URL/rag/query -H "authorization: Bearer $KEY" --json '{"query":"How do I bleed the pump?","topK":3}'
  curl $URL/ai/chat -H "authorization: Bearer $KEY" --json '{"messages":[{"role":"user","content":"What are you?"}]}'

Ctrl-C stops it.`);
  let isStopping = false;
  stop = () => {
    if (isStopping) return;
    isStopping = true;
    console.log("\nstopping …");
    void stack.close().then(() => console.log("stopped"));
  };
  process.on("SIGINT", () => stop());
  process.on("SIGTERM", () => stop());
}

try {
  await start();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  if (error instanceof StartFailure) process.exit(error.exitCode);
  process.exit(error instanceof ConfigError ? 2 : 1);
}
