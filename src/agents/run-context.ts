import type { WorkContext } from "../jobs/work-context.ts";
import type { RunResult } from "./schemas.ts";

/** What a run is given; an agent's run gives the one that it makes for a tool call the same. */
export type RunContext = WorkContext;

/** The same for what runs it; `execute` runs an agent that is called as a tool. */
export type InnerRunContext = RunContext & { execute(context: RunContext): Promise<RunResult> };
