import type { Gateway } from "../gateway/gateway.ts";
import type { AgentStore } from "../store/agent-store.ts";

/** What agents work with. */
export type AgentsDeps = {
  store: { agents: AgentStore };
  gateway: Pick<Gateway, "findModel">;
  /** Origins that tools may reach although they are not public. */
  fetchOrigins: readonly string[];
};
