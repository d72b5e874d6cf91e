import type { Cpu, Demand, Kind, Part } from "./demand.ts";
import { parts, workflowSteps } from "./demand.ts";
import type { Figures } from "./measured.ts";

/** The highest rate of a day, in parts of the mean. */
export const peakFactor = 3;
/** Chunks of a document in the plan. */
const chunksADocument = 20;
/** A run of an agent in the plan: so many calls of a model that takes so long. */
export const plannedAgent = { calls: 5, secondsACall: 2 };
/** Steps of a workflow's run in the plan. */
const plannedSteps = 8;

/** Work of one sort that comes so many times a day. */
export type Volume = {
  name: string;
  perDay: number;
  takes: Unit;
  slots?: { queue: string; each: number; heldS: number };
};
/** What one unit takes of the parts, in ms, bytes and messages. */
export type Unit = { cpu: Cpu; besideMs: number; storeMessages: number; storedBytes: number; redisCommands: number };

const toUnit = ({ busy, besideMs, messages, storedBytes, redisCommands }: Demand): Unit => ({
  cpu: busy,
  besideMs,
  storeMessages: messages.api.store + messages.worker.store,
  storedBytes,
  redisCommands,
});

/** `a + share * (b - a)` of everything that a unit takes. */
function blend(a: Unit, b: Unit, share: number): Unit {
  const mix = (from: number, to: number) => Math.max(0, from + share * (to - from));
  const cpu = (part: Part) => mix(a.cpu[part], b.cpu[part]);
  return {
    cpu: Object.fromEntries(parts.map((part) => [part, cpu(part)])) as Cpu, // of all parts
    besideMs: mix(a.besideMs, b.besideMs),
    storeMessages: mix(a.storeMessages, b.storeMessages),
    storedBytes: mix(a.storedBytes, b.storedBytes),
    redisCommands: mix(a.redisCommands, b.redisCommands),
  };
}

/** What a unit takes that is `count` of two measured ones, of `few` and of `many` pieces. */
function sized(demands: Figures["demands"], few: [Kind, number], many: [Kind, number], count: number): Unit {
  const share = (count - few[1]) / (many[1] - few[1]);
  return blend(toUnit(demands[few[0]]), toUnit(demands[many[0]]), share);
}

/** A document of so many chunks. */
export const documentOf = ({ demands, largeDocumentChunks }: Figures, chunks: number): Unit =>
  sized(demands, ["small document", 1], ["large document", largeDocumentChunks], chunks);
/** A workflow's run of so many steps. */
export const workflowOf = ({ demands }: Figures, steps: number): Unit =>
  sized(
    demands,
    ["short workflow", workflowSteps["short workflow"]],
    ["long workflow", workflowSteps["long workflow"]],
    steps,
  );

/** What one unit more of a pair takes: a chunk, a step. */
export function further(unitOf: (figures: Figures, count: number) => Unit, figures: Figures): Unit {
  const [ten, eleven] = [unitOf(figures, 10), unitOf(figures, 11)];
  const less = (read: (unit: Unit) => number) => read(eleven) - read(ten);
  return {
    cpu: Object.fromEntries(parts.map((part) => [part, less(({ cpu }) => cpu[part])])) as Cpu, // of all parts
    besideMs: less(({ besideMs }) => besideMs),
    storeMessages: less(({ storeMessages }) => storeMessages),
    storedBytes: less(({ storedBytes }) => storedBytes),
    redisCommands: less(({ redisCommands }) => redisCommands),
  };
}

/** The volumes that the page answers for. */
export function volumesOf(figures: Figures): Volume[] {
  const { demands } = figures;
  const unit = (kind: Kind) => toUnit(demands[kind]);
  const agentS = plannedAgent.calls * plannedAgent.secondsACall;
  const documents: Volume = {
    name: `100 million chunks, in documents of ${chunksADocument}`,
    perDay: 100e6 / chunksADocument,
    takes: documentOf(figures, chunksADocument),
  };
  const streams: Volume = { name: "10 million chats, streamed", perDay: 10e6, takes: unit("streamed chat") };
  const agents: Volume = {
    name: `1 million jobs: agent runs of ${plannedAgent.calls} calls of ${plannedAgent.secondsACall} s`,
    perDay: 1e6,
    takes: unit("agent run"),
    slots: { queue: "agent-runs", each: 16, heldS: agentS },
  };
  return [
    { name: "10 million chats, JSON", perDay: 10e6, takes: unit("chat") },
    streams,
    { name: "10 million stored responses", perDay: 10e6, takes: unit("stored response") },
    { name: "1 million jobs that do nothing", perDay: 1e6, takes: unit("no-op job") },
    {
      name: `1 million jobs: workflows of ${plannedSteps} steps`,
      perDay: 1e6,
      takes: workflowOf(figures, plannedSteps),
    },
    agents,
    documents,
  ];
}
