import type { Attack } from "./attack.ts";
import { answerAttacks } from "./attacks/answers.ts";
import { archiveAttacks } from "./attacks/archives.ts";
import { bodyAttacks } from "./attacks/bodies.ts";
import { documentAttacks } from "./attacks/documents.ts";
import { floodAttacks } from "./attacks/floods.ts";
import { multiplyingAttacks } from "./attacks/multiplying.ts";
import { outsideAttacks } from "./attacks/outsides.ts";
import { readerAttacks } from "./attacks/readers.ts";
import { widgetAttacks } from "./attacks/widget.ts";
import { workflowAttacks } from "./attacks/workflows.ts";

/** Every attack that is known. Another one is one more value in a file of `attacks/`. */
export const allAttacks: readonly Attack[] = [
  ...documentAttacks,
  ...archiveAttacks,
  ...workflowAttacks,
  ...bodyAttacks,
  ...answerAttacks,
  ...floodAttacks,
  ...widgetAttacks,
  ...readerAttacks,
  ...outsideAttacks,
  ...multiplyingAttacks,
];
