/** How models are named that stand for runs, above the gateway: of an agent, and of a composite pattern. */
export const AGENT = "agent:";
export const COMPOSITE = "composite:";

/** Whether a chat with this model is answered by a run, and not by the gateway. */
export const isRunModel = (model: string) => model.startsWith(AGENT) || model.startsWith(COMPOSITE);
