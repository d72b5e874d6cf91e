import type { GuardText } from "./guard-text.ts";
import { findBareIds, findIdValues, type IdRule } from "./id-value.ts";
import { labelPattern } from "./labels.ts";
import type { Span } from "./spans.ts";

const labels = labelPattern(
  "(?:e|u|h)?mrns?|m[ ._/-]{0,2}r[ ._/-]{0,2}n\\.?",
  "urns?|u\\.?r\\.? ?(?:numbers?|nos?|num|#)",
  "mr ?(?:#|no\\b|num\\b|number)",
  "med(?:ical|\\.)?[ _.-]{0,2}rec(?:ord|\\.)?s?[ _.-]{0,2}(?:numbers?|nos?|num|nbr|nr|#|ids?|identifiers?)?",
  "(?:health|hospital|clinic|clinical|patient|ehr|emr)(?:'s)?[ _-]?(?:medical )?records?[ _-]?(?:numbers?|nos?|num|nr|#|ids?|identifiers?)?",
  "(?:hospital|chart|unit record|uhid|case ?sheet)[ _-]?(?:numbers?|nos?|num|nr|#|ids?)",
  "uhid|nhc",
  "(?:numero (?:de )?)?(?:historia|historial) clinic[ao]",
  "(?:numero (?:de )?)?(?:dossier|fichier) (?:medical|patient)",
  "(?:kranken|patienten)akte(?:n?nummer)?|fallnummer",
  "cartella clinica|prontuario(?: medico)?|medisch dossier(?:nummer)?",
);

/** A record of a database has a number too; that of a patient is longer. */
const recordLabels = labelPattern("records? ?(?:numbers?|nos?|num|nr|#|ids?)");
/** "Chart 445566": the bare word names a long number that follows at once. */
const bare = /(?<![a-z])(?:charts?|case ?notes?)[ :]{1,2}#?([a-z]{0,3}-?\d{5,12})(?![\d.,/:a-z-])/g;

const rules: readonly IdRule[] = [
  { labels, minDirect: 3, minNear: 4 },
  { labels: recordLabels, minDirect: 5, minNear: 6 },
];

/** Medical record numbers: every hospital has its own form, so labels name them. */
export function findMedicalRecordNumbers(text: GuardText): Span[] {
  return [...findIdValues(text, rules), ...findBareIds(text.text, bare)];
}
