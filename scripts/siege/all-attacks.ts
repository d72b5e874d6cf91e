import type { Attack } from "./attack.ts";
import { answerAttacks } from "./attacks/answers.ts";
import { bodyAttacks } from "./attacks/bodies.ts";
import { documentAttacks } from "./attacks/documents.ts";
import { widgetAttacks } from "./attacks/widget.ts";
import { workflowAttacks } from "./attacks/workflows.ts";

/** Every attack that is known. Another one is one more value in a file of `attacks/`. */
export function allAttacks(memberKey: string): readonly Attack[] {
  return [...documentAttacks, ...workflowAttacks, ...bodyAttacks(memberKey), ...answerAttacks, ...widgetAttacks];
}
