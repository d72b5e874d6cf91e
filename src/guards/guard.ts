import { findBankAccounts } from "./bank-account.ts";
import { findBirthDates } from "./birth-date.ts";
import { findCardNumbers } from "./card-number.ts";
import { findEmailAddresses } from "./email-address.ts";
import { type GuardText, readGuardText } from "./guard-text.ts";
import { findIbans } from "./iban.ts";
import { findIpAddresses } from "./ip-address.ts";
import { findMedicalRecordNumbers } from "./medical-record-number.ts";
import { findPatientIds } from "./patient-id.ts";
import { findPhoneNumbers } from "./phone-number.ts";
import { type Reading, readingsOf } from "./readings.ts";
import { findRoutingNumbers } from "./routing-number.ts";
import { findSecrets } from "./secret.ts";
import type { Span } from "./spans.ts";
import { findSsns } from "./ssn.ts";

/** How a kind is found. */
type Recogniser = {
  find(text: GuardText): Span[];
  /** Its values may have no digit. */
  isOfLetters?: boolean;
  /** Read with words left whole that only a capital parts, as in `JohnDoe@example.com`. */
  isLenient?: boolean;
};

const recognisers = {
  ssn: { find: findSsns },
  medical_record_number: { find: findMedicalRecordNumbers },
  date_of_birth: { find: findBirthDates },
  patient_identifier: { find: findPatientIds },
  card_number: { find: findCardNumbers },
  bank_account_number: { find: findBankAccounts },
  iban: { find: findIbans },
  routing_number: { find: findRoutingNumbers },
  email_address: { find: findEmailAddresses, isOfLetters: true, isLenient: true },
  phone_number: { find: findPhoneNumbers, isLenient: true },
  ip_address: { find: findIpAddresses, isLenient: true },
  secret: { find: findSecrets, isOfLetters: true, isLenient: true },
} as const satisfies Record<string, Recogniser>;

/** What a guard looks for. */
export type GuardKind = keyof typeof recognisers;
/** All of them. */
export const guardKinds = Object.keys(recognisers) as [GuardKind, ...GuardKind[]]; // the names of the object above

/** Where a text holds something that must not pass: positions in UTF-16 units, never the value. */
export type Finding = Span & { kind: GuardKind };

/** Findings of one kind that are reported of one text, at most. */
const MAX_FINDINGS = 20;

/**
 * Looks for identifiers of the given kinds. Pure, and linear in the length of the text; a text may be any, in any script.
 * Answers kinds and positions in the order of the text; never anything of the text itself. Of each kind 20 at most.
 */
export function inspect(text: string, kinds: readonly GuardKind[]): Finding[] {
  const found = new Map<GuardKind, Finding[]>();
  for (const finding of findingsOf(text, kinds)) {
    const known = found.get(finding.kind) ?? [];
    if (known.length === 0) found.set(finding.kind, known);
    const isKnown = ({ start, end }: Span) => start < finding.end && finding.start < end;
    if (known.length < MAX_FINDINGS && !known.some(isKnown)) known.push(finding);
  }
  return [...found.values()].flat().sort((a, b) => a.start - b.start);
}

/**
 * All values of the given kinds, in order and apart: where two overlap, they are one of the kind that begins first, and of the
 * longer one if they begin together. Pure, and takes n log n for n values.
 */
export const findValues = (text: string, kinds: readonly GuardKind[]): Finding[] => inOrder(findingsOf(text, kinds));

/** Findings in order and apart, as `findValues` has them. */
export function inOrder(findings: Iterable<Finding>): Finding[] {
  const values: Finding[] = [];
  for (const finding of [...findings].sort((a, b) => a.start - b.start || b.end - a.end)) {
    const last = values.at(-1);
    if (last === undefined || finding.start >= last.end) values.push({ ...finding });
    else last.end = Math.max(last.end, finding.end);
  }
  return values;
}

/** What each reading of a text shows of each kind; a value may come twice. */
function* findingsOf(text: string, kinds: readonly GuardKind[]): Generator<Finding> {
  if (kinds.length === 0) return;
  for (const reading of readingsOf(text)) {
    const textOf = makeTexts(reading);
    for (const kind of kinds) {
      const { find, isOfLetters, isLenient = false }: Recogniser = recognisers[kind];
      const read = textOf(reading.isLenient || isLenient);
      if (read.digits.starts.length === 0 && isOfLetters !== true) continue;
      for (const span of find(read)) {
        const { start, end } = read.toOriginal(span);
        yield { kind, start, end };
      }
    }
  }
}

/** The text of a reading as recognisers take it, folded once in each way. */
function makeTexts(reading: Reading) {
  const texts: { plain?: GuardText; lenient?: GuardText } = {};
  return (isLenient: boolean): GuardText => {
    const name = isLenient ? "lenient" : "plain";
    const known = texts[name] ?? readGuardText({ ...reading, isLenient });
    texts[name] = known;
    return known;
  };
}
