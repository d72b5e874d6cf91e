/** The parts of a running product, and the generator with its model's server as `client`. */
export const parts = ["client", "api", "worker", "parser", "store", "redis"] as const;
export type Part = (typeof parts)[number];
/** CPU time of each part, in ms. */
export type Cpu = Record<Part, number>;

/** After how much CPU a pause comes, how long it is, in ms, and the squared coefficient of variation of that. */
export type Pause = { everyMs: number; ms: number; variation: number };

/** What one unit of a kind of work takes, as measured; all of it is plain data. */
export type Demand = {
  /** CPU of the threads that do the work, with many units at once, and one at a time. */
  busy: Cpu;
  lone: Cpu;
  /** CPU of further threads of all parts of the product, with many at once: compilers, collectors, the copying of the store's log. */
  besideMs: number;
  /** Messages to the store and to Redis, by who sends them. */
  messages: Record<"api" | "worker", { store: number; redis: number }>;
  /** Bytes between the processes and the store, and Redis, both ways. */
  bytes: { store: number; redis: number };
  /** Commands that Redis ran. */
  redisCommands: number;
  /** Bytes by which the store's file grew. */
  storedBytes: number;
  /** Garbage collection, with many at once. */
  pause: Record<"api" | "worker", Pause>;
  /** From the request to the response, one at a time, in ms. */
  latencyMs: { p50: number; p99: number };
  /** Squared coefficient of variation of that, without its longest. */
  variation: number;
};

export const kinds = [
  "chat",
  "streamed chat",
  "stored response",
  "query",
  "no-op job",
  "short workflow",
  "long workflow",
  "small document",
  "large document",
  "agent run",
] as const;
export type Kind = (typeof kinds)[number];

/** What of a unit is not CPU: calls of a model and their waits, and places of the worker's jobs. */
export type Shape = {
  /** Calls of the model by the API, or by the worker. */
  modelCalls: number;
  /** Parts in which a model's response comes, and the wait before each, in ms. */
  parts: number;
  partWaitMs: number;
  /** Jobs that a worker runs at once; undefined when the work is no job. */
  slots?: number;
};

/** Words of a stream of the bench's model, and the wait before each, in ms. */
export const streamWords = 32;
const wordWaitMs = 2;
/** Steps of the two workflows, whose difference tells what a step takes. */
export const workflowSteps = { "short workflow": 2, "long workflow": 18 } as const;
/** Characters of the two documents, whose difference tells what a chunk takes. */
export const documentCharacters = { "small document": 1_000, "large document": 200_000 } as const;
/** Chunks of the tenant whose documents are searched. */
export const searchedChunks = 10_000;
/** Calls of the model in a run of the bench's agent; all but the last ask for a tool. */
export const agentCalls = 5;
/** How long the bench's model thinks before each of them, in ms. */
export const agentThinkMs = 20;

const call = { modelCalls: 1, parts: 1, partWaitMs: 0 };
const none = { modelCalls: 0, parts: 0, partWaitMs: 0 };
export const shapes: Record<Kind, Shape> = {
  chat: call,
  "streamed chat": { ...call, parts: streamWords, partWaitMs: wordWaitMs },
  "stored response": call,
  query: none,
  "no-op job": { ...none, slots: 50 },
  "short workflow": { ...none, slots: 16 },
  "long workflow": { ...none, slots: 16 },
  "small document": { ...none, slots: 4 },
  "large document": { ...none, slots: 4 },
  "agent run": { modelCalls: agentCalls, parts: 1, partWaitMs: agentThinkMs, slots: 16 },
};
