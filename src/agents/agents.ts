import { type Definitions, makeDefinitions } from "./definitions.ts";
import type { AgentsDeps } from "./deps.ts";

/** Agents and their runs, bound to what they work with. */
export type Agents = Definitions;

export function makeAgents(deps: AgentsDeps): Agents {
  return { ...makeDefinitions(deps) };
}
