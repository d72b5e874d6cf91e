import { hasNhsChecksum } from "./checksums.ts";
import { toPart } from "./digits.ts";
import type { GuardText } from "./guard-text.ts";
import { findBareIds, findIdValues, type IdRule } from "./id-value.ts";
import { labelPattern } from "./labels.ts";
import { findNamedNumbers, type NumberRule } from "./named-numbers.ts";
import { findSpans, type Span } from "./spans.ts";

const idWords = "(?:ids?|i\\.d\\.|identifiers?|identification(?: number| no| code)?)";
const numberWords = "(?:numbers?|nos?|num|nbr|nr|#|codes?)";
const explicitLabels = labelPattern(
  `(?:patients?|pts?|pat)(?:'s|s')?[ _.-]{0,2}${idWords}`,
  `(?:hospital|clinic|medical|health|healthcare) ?${idWords}`,
  `(?:insurance|health ?plan|health insurance|member|subscriber|beneficiary|medicaid|medicare|hicn?|mbi|enrollee|policy ?holder)[ _-]{0,2}(?:card )?(?:${idWords}|${numberWords})`,
  "(?:health|medicare|medicaid) card",
  `(?:patient|pt)(?:'s)? (?:ref|reference|file|case)(?: ?${numberWords})?`,
  "mbi|hicn|medicare|medicaid",
  "pid(?= ?[:=#]| \\d{6})",
  `(?:patients?|pt)(?: [a-z]{1,12}){0,3} (?:with|has|having|under)(?: an?| the)? ${idWords}`,
  "patient account(?: (?:number|no|num|#))?",
  "(?:id|identificador|identificacion|numero|numero de identificacion) (?:de |del |do |da |du )?(?:el |la |le )?pac?tient?e",
  "(?:id|identificador|identificacion|numero|identifiant|numero de) (?:de |del |do |da |du )?(?:paciente|patient|paziente)",
  "patienten(?:nummer|nr|id|kennung)|patientnummer|pasientnummer|potilasnumero|numer pacjenta",
);
const numberLabels = labelPattern(
  `(?:insurance )?policy[ _-]?(?:${idWords}|${numberWords})`,
  `(?:patients?|pts?|pat)(?:'s|s')?[ _.-]{0,2}${numberWords}`,
);
const rules: readonly IdRule[] = [
  { labels: explicitLabels, minDirect: 2, minNear: 4 },
  { labels: numberLabels, minDirect: 3, minNear: 5 },
];
/** The bare name of the NHS, which has telephones too, names a number with the right check digit alone. */
const nhsRules: readonly NumberRule[] = [
  { labels: labelPattern("(?:nhs|chi)[ _-]?(?:numbers?|nos?|num|#|ids?)"), isDirect: () => true, isNear: () => true },
  { labels: labelPattern("nhs"), isDirect: hasNhsChecksum, isNear: hasNhsChecksum },
];
const NHS_DIGITS = 10;
/** "patient 104822": the bare word names a long number that follows at once. */
const bare =
  /(?<![a-z])(?:patient|pt)[ :]{1,2}#?([a-z]{0,3}-?\d{5,12}|\d{3}-\d{2}-\d{4}|\d{2}-\d{3}-\d{2,3})(?![\d.,/:a-z-])/g;
/** Medicare's beneficiary identifier (CMS): eleven places, each of digits, letters (without S, L, O, I, B, Z), or both. */
const L = "[ac-hjkmnp-rt-y]";
const E = "[0-9ac-hjkmnp-rt-y]";
const beneficiary = new RegExp(`(?<![a-z0-9])[1-9]${L}${E}\\d-?${L}${E}\\d-?${L}{2}\\d\\d(?![a-z0-9])`, "g");
/** Field 3 of a PID segment of HL7 version 2. */
const hl7 = /(?<![a-z])pid\|[^|\n]{0,10}\|[^|\n]{0,40}\|(?=[^|\n]{0,40}\d)([^|^\n]{1,40})/g;

/** Identifiers of patients and of members of health plans: by labels, by Medicare's form, by the fields of HL7. */
export function findPatientIds(text: GuardText): Span[] {
  const runs = text.digits.runs(NHS_DIGITS).filter(({ length }) => length === NHS_DIGITS);
  return [
    ...findIdValues(text, rules),
    ...findBareIds(text.text, bare),
    ...findNamedNumbers(text, runs, { rules: nhsRules, partsOf: ({ groups }) => [toPart(text.text, groups)] }),
    ...findSpans(text.text, beneficiary),
    ...findSpans(text.text, hl7),
  ];
}
