import { hasNhsChecksum } from "./checksums.ts";
import { digitsOf } from "./digits.ts";
import type { GuardText } from "./guard-text.ts";
import { findBareIds, findIdValues } from "./id-value.ts";
import { findLabels, labelPattern } from "./labels.ts";
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
const nhsLabels = labelPattern("(?:nhs|chi)[ _-]?(?:numbers?|nos?|num|#|ids?)");
const loneNhsLabels = labelPattern("nhs");
/** "patient 104822": the bare word names a long number that follows at once. */
const bare =
  /(?<![a-z])(?:patient|pt)[ :]{1,2}#?(?=([a-z]{0,3}-?\d{5,12}|\d{3}-\d{2}-\d{4}|\d{2}-\d{3}-\d{2,3})(?![\d.,/:a-z-]))/g;
/** Medicare's beneficiary identifier (CMS): eleven places, each of digits, letters (without S, L, O, I, B, Z), or both. */
const L = "[ac-hjkmnp-rt-y]";
const E = "[0-9ac-hjkmnp-rt-y]";
const beneficiary = new RegExp(`(?<![a-z0-9])[1-9]${L}${E}\\d-?${L}${E}\\d-?${L}{2}\\d\\d(?![a-z0-9])`, "g");
/** Field 3 of a PID segment of HL7 version 2. */
const hl7 = /(?<![a-z])pid\|[^|\n]{0,10}\|[^|\n]{0,40}\|(?=[^|\n]{0,40}\d)([^|^\n]{1,40})/g;

/** Identifiers of patients and of members of health plans: by their words, by Medicare's form, by the fields of HL7. */
export function findPatientIds(text: GuardText): Span[] {
  return [
    ...findIdValues(text, findLabels(text, explicitLabels), { minDirect: 2, minNear: 4 }),
    ...findIdValues(text, findLabels(text, numberLabels), { minDirect: 3, minNear: 5 }),
    ...findBareIds(text.text, bare),
    ...findNhsNumbers(text),
    ...findSpans(text.text, beneficiary),
    ...findHl7(text.text),
  ];
}

/** Ten digits that a label names; by the bare name of the NHS, which has telephones too, only with their check digit. */
function findNhsNumbers(text: GuardText): Span[] {
  const runs = [...text.digits.runs(10), ...text.digits.looseRuns(10)].filter(({ length }) => length === 10);
  if (runs.length === 0) return [];
  const named = findLabels(text, nhsLabels);
  const lone = findLabels(text, loneNhsLabels);
  if (named.spans.length + lone.spans.length === 0) return [];
  return runs
    .filter(
      (run) =>
        named.nearness(run) !== undefined ||
        (lone.nearness(run) !== undefined && hasNhsChecksum(digitsOf(text.text, run.groups))),
    )
    .map(({ start, end }) => ({ start, end }));
}

function findHl7(text: string): Span[] {
  return [...text.matchAll(hl7)].map((match) => {
    const end = match.index + match[0].length;
    return { start: end - (match[1]?.length ?? 0), end };
  });
}
