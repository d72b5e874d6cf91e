import { agentRunTool } from "./agent-run.ts";
import { chatTool } from "./chat.ts";
import { compositeExecuteTool } from "./composite-execute.ts";
import { healthTool } from "./health.ts";
import { modelsTool } from "./models.ts";
import { orgAddTenantTool } from "./org-add-tenant.ts";
import { orgCreateTool } from "./org-create.ts";
import { orgGetTool } from "./org-get.ts";
import { ragQueryTool } from "./rag-query.ts";
import type { AnyTool } from "./tool.ts";

/** Every tool of the tool server, in the order of its list. */
export const allTools: readonly AnyTool[] = [
  chatTool,
  ragQueryTool,
  agentRunTool,
  compositeExecuteTool,
  modelsTool,
  healthTool,
  orgCreateTool,
  orgGetTool,
  orgAddTenantTool,
];
