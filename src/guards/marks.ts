import type { GuardKind } from "./guard.ts";

/** What stands in the place of a value, by its kind: `[CARD_1]`. */
const names: Readonly<Record<GuardKind, string>> = {
  ssn: "SSN",
  medical_record_number: "MRN",
  date_of_birth: "BIRTH_DATE",
  patient_identifier: "PATIENT_ID",
  card_number: "CARD",
  bank_account_number: "ACCOUNT",
  iban: "IBAN",
  routing_number: "ROUTING",
  email_address: "EMAIL",
  phone_number: "PHONE",
  ip_address: "IP",
  secret: "SECRET",
};
const mark = new RegExp(`\\[(?:${Object.values(names).join("|")})_\\d{1,9}\\]`, "g");
/** The beginning of a mark at the end of a text. */
const maybeMark = /\[[A-Z_]{0,12}\d{0,9}$/;

/** The marks of one call: the same value has the same mark. They are kept in memory, for the time of the call. */
export function makeMarks() {
  const markOf = new Map<string, string>();
  const values = new Map<string, string>();
  const last = new Map<GuardKind, number>();
  const taken = new Set<string>();
  let isSealed = false;
  /** The value of a mark; a text of JSON has it escaped. */
  const toValue = (one: string, isJson: boolean) => {
    const value = values.get(one);
    if (value === undefined) return one;
    return isJson ? JSON.stringify(value).slice(1, -1) : value;
  };
  return {
    /** Notes the marks that a text has already: they stand for values of an earlier call. */
    avoid(text: string): void {
      if (text.includes("[")) for (const [known] of text.matchAll(mark)) taken.add(known);
    },
    /** From now on marks stand for values of the answer, which are not put back. */
    seal(): void {
      isSealed = true;
    },
    /** The mark of a value. */
    of(kind: GuardKind, value: string): string {
      const key = `${kind} ${kind === "secret" ? value : value.replace(/[^\p{L}\p{N}@]/gu, "").toLowerCase()}`;
      const known = markOf.get(key);
      if (known !== undefined) return known;
      let number = (last.get(kind) ?? 0) + 1;
      while (taken.has(`[${names[kind]}_${number}]`)) number += 1;
      last.set(kind, number);
      const made = `[${names[kind]}_${number}]`;
      markOf.set(key, made);
      if (!isSealed) values.set(made, value);
      return made;
    },
    /** A text with the values in the place of their marks. `isJson`: it is JSON, and the marks stand in strings. */
    restore: (text: string, isJson = false): string =>
      values.size === 0 || !text.includes("[") ? text : text.replace(mark, (one) => toValue(one, isJson)),
    /** The same for a text that comes in parts: what may be the beginning of a mark waits for its rest. */
    restoring(isJson = false) {
      let held = "";
      return {
        push(part: string): string {
          const text = held + part;
          held = values.size === 0 ? "" : (maybeMark.exec(text)?.[0] ?? "");
          const whole = text.slice(0, text.length - held.length);
          return values.size === 0 ? whole : whole.replace(mark, (one) => toValue(one, isJson));
        },
        end(): string {
          const rest = held;
          held = "";
          return rest;
        },
      };
    },
  };
}
