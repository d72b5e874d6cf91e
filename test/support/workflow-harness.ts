import { type AgentUpstream, startAgentUpstream } from "./agent-upstream.ts";
import { type ApiClient, type ApiResponse, makeClient } from "./http-client.ts";
import { pollUntil } from "./poll-until.ts";
import { startPlatform, type TestOptions, type TestPlatform } from "./start-platform.ts";
import { startToolServer, type ToolServer } from "./tool-server.ts";

export const chatModel = "gpt-5.4-mini";

/** A step of a run, as the API shows it. */
export type StepRun = {
  id: string;
  type: string;
  path: string;
  status: string;
  attempts: number;
  output?: unknown;
  error?: { code: string; message: string; param?: string; details?: Record<string, unknown> };
};

export type WorkflowHarness = {
  test: TestPlatform;
  /** The model that completion steps ask. */
  model: AgentUpstream;
  /** Receives webhooks. */
  site: ToolServer;
  owner: ApiClient;
  admin: ApiClient;
  member: ApiClient;
  stranger: ApiClient;
  /** Creates a workflow of the member's; its id. */
  create(steps: object[], more?: object): Promise<string>;
  /** Starts a run; its id. */
  start(workflowId: string, input?: unknown): Promise<string>;
  /** The run, once it is in one of these states. */
  reach(workflowId: string, runId: string, ...states: string[]): Promise<ApiResponse>;
  /** Creates, starts, and waits for the end; the run. */
  run(steps: object[], input?: unknown): Promise<ApiResponse>;
  close(): Promise<void>;
};

const ends = ["completed", "failed", "rejected", "expired", "cancelled"];

/** The product with a model, a receiver of webhooks, and a client of each role. */
export async function openWorkflowHarness(options: TestOptions = {}): Promise<WorkflowHarness> {
  const [model, site] = await Promise.all([startAgentUpstream(), startToolServer()]);
  const test = await startPlatform({
    ...options,
    env: {
      OPENAI_API_KEY: "sk-test",
      OPENAI_BASE_URL: model.url,
      PROVIDER_MAX_ATTEMPTS: "1",
      FETCH_ALLOW_ORIGINS: site.origin,
      RECONCILE_EVERY_MS: "500",
      ...options.env,
    },
  });
  const clientOf = (key: string) => makeClient({ url: test.url, key });
  const member = clientOf(test.keys.member);
  const harness: WorkflowHarness = {
    test,
    model,
    site,
    owner: clientOf(test.keys.owner),
    admin: clientOf(test.keys.admin),
    member,
    stranger: clientOf(test.keys.stranger),
    async create(steps, more = {}) {
      const made = await member.post("/workflows", { name: "Desk", steps, ...more });
      if (made.status !== 201) throw new Error(made.text);
      return made.string("workflowId");
    },
    async start(workflowId, input) {
      const started = await member.post(`/workflows/${workflowId}/execute`, { input });
      if (started.status !== 202) throw new Error(started.text);
      return started.string("runId");
    },
    reach: (workflowId, runId, ...states) =>
      pollUntil(
        async () => {
          const run = await member.get(`/workflows/${workflowId}/runs/${runId}`);
          return run.status === 200 && states.includes(run.string("status")) ? run : undefined;
        },
        { timeoutMs: 30_000, what: `a run that is ${states.join(" or ")}` },
      ),
    async run(steps, input) {
      const workflowId = await harness.create(steps);
      return harness.reach(workflowId, await harness.start(workflowId, input), ...ends);
    },
    async close() {
      await test.close();
      await model.close();
      await site.close();
    },
  };
  return harness;
}

/** A step that gives names to values. */
export const set = (id: string, values: object) => ({ type: "set", id, values });

/** A condition step. */
export const condition = (expression: string, yes: object[], no?: object[]) => ({
  type: "condition",
  expression,
  // biome-ignore lint/suspicious/noThenProperty: so it is called in the interface
  then: yes,
  ...(no ? { else: no } : {}),
});

/** The steps of a run, as the API shows them. */
export const stepsOf = (run: ApiResponse) => run.at("steps") as StepRun[]; // the client has checked its schema
