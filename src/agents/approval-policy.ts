import { z } from "zod";
import { MAX_WAIT_MS } from "./wait-in-call.ts";

/** How long an approval waits that names no time, in ms. */
export const DEFAULT_APPROVAL_MS = 7 * 86_400_000;

/** Who has to approve the calls of a tool before they are made. */
export const approvalPolicySchema = z
  .strictObject({
    assigneeRole: z.enum(["owner", "admin"]),
    when: z
      .string()
      .min(1)
      .max(10_000)
      .optional()
      .describe(
        "CEL over `arguments` and `context`: calls for which it is false need no approval. Default: all need it",
      ),
    timeoutMs: z.number().int().min(1_000).max(MAX_WAIT_MS).optional().describe("Default: 7 days"),
    message: z.string().trim().min(1).max(2_000).optional().describe("What the approver reads"),
    onExpiry: z
      .enum(["observe", "stop"])
      .default("observe")
      .describe("When nobody decides in time: the model reads that, or the run is stopped"),
  })
  .describe("Who has to approve its calls; a call waits for the decision, and nothing is held for it");
export type ApprovalPolicy = z.output<typeof approvalPolicySchema>;

/** Who has to approve the calls of a name; undefined: nobody. */
export type PolicyOf = (toolName: string) => ApprovalPolicy | undefined;
