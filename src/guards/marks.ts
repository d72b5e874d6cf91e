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

export type Marks = ReturnType<typeof makeMarks>;

/** The marks of one call: the same value has the same mark. They are kept in memory, for the time of the call. */
export function makeMarks() {
  const markOf = new Map<string, string>();
  const valueOf = new Map<string, string>();
  const last = new Map<GuardKind, number>();
  const taken = new Set<string>();
  return {
    /** Notes the marks that a text has already: they stand for values of an earlier call. */
    avoid(text: string): void {
      if (text.includes("[")) for (const [known] of text.matchAll(mark)) taken.add(known);
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
      valueOf.set(made, value);
      return made;
    },
    /** A text with the values in the place of their marks. */
    restore: (text: string): string =>
      valueOf.size === 0 || !text.includes("[") ? text : text.replace(mark, (one) => valueOf.get(one) ?? one),
    /** The same for a text that comes in parts: what may be the beginning of a mark waits for its rest. */
    restoring() {
      let held = "";
      return {
        push(part: string): string {
          const text = held + part;
          held = valueOf.size === 0 ? "" : (maybeMark.exec(text)?.[0] ?? "");
          const whole = text.slice(0, text.length - held.length);
          return valueOf.size === 0 ? whole : whole.replace(mark, (one) => valueOf.get(one) ?? one);
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
