import { findBankAccounts } from "./bank-account.ts";
import { findBirthDates } from "./birth-date.ts";
import { findCardNumbers } from "./card-number.ts";
import { type GuardText, readGuardText } from "./guard-text.ts";
import { findIbans } from "./iban.ts";
import { findMedicalRecordNumbers } from "./medical-record-number.ts";
import { findPatientIds } from "./patient-id.ts";
import { readingsOf } from "./readings.ts";
import { findRoutingNumbers } from "./routing-number.ts";
import type { Span } from "./spans.ts";
import { findSsns } from "./ssn.ts";

const recognisers = {
  ssn: findSsns,
  medical_record_number: findMedicalRecordNumbers,
  date_of_birth: findBirthDates,
  patient_identifier: findPatientIds,
  card_number: findCardNumbers,
  bank_account_number: findBankAccounts,
  iban: findIbans,
  routing_number: findRoutingNumbers,
} as const satisfies Record<string, (text: GuardText) => Span[]>;

/** What a guard looks for. */
export type GuardKind = keyof typeof recognisers;

/** Where a text holds something that its profile must not let through: positions in UTF-16 units, never the value. */
export type Finding = Span & { kind: GuardKind };

/** Findings of one kind that are reported of one text, at most. */
const MAX_FINDINGS = 20;

/**
 * Looks for identifiers of the given kinds. Pure, and linear in the length of the text; a text may be any, in any script.
 * Answers kinds and positions in the order of the text; never anything of the text itself.
 */
export function inspect(text: string, kinds: readonly GuardKind[]): Finding[] {
  const found: Finding[] = [];
  for (const reading of readingsOf(text)) {
    const read = readGuardText(reading);
    // every identifier has a digit
    if (read.digits.starts.length === 0) continue;
    for (const kind of kinds) addFindings(found, kind, read);
  }
  return found.sort((a, b) => a.start - b.start);
}

/** Adds what one reading shows of a kind, without what another one has shown. */
function addFindings(found: Finding[], kind: GuardKind, read: GuardText): void {
  const known = found.filter((finding) => finding.kind === kind);
  for (const span of recognisers[kind](read)) {
    if (known.length >= MAX_FINDINGS) return;
    const { start, end } = read.toOriginal(span);
    if (known.some((finding) => finding.start < end && start < finding.end)) continue;
    const finding = { kind, start, end };
    known.push(finding);
    found.push(finding);
  }
}
