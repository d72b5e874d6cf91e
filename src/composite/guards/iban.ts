import { hasIbanChecksum } from "./checksums.ts";
import type { GuardText } from "./guard-text.ts";
import type { Span } from "./spans.ts";

/** Lengths of the countries' IBANs (SWIFT's IBAN registry). */
const lengths =
  "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30";
const lengthOf = new Map(lengths.split(" ").map((entry) => [entry.slice(0, 2).toLowerCase(), Number(entry.slice(2))]));
const start = /(?:(?<![a-z0-9])|(?<=iban))[a-z]{2} ?\d{2}/g;
/** Separators that one IBAN may hold; more are another text. */
const MAX_SEPARATORS = 34;

/** International bank account numbers: a registered country, its length, and the checksum (ISO 13616). They need no label. */
export function findIbans({ text }: GuardText): Span[] {
  const found: Span[] = [];
  for (const match of text.matchAll(start)) {
    const length = lengthOf.get(match[0].slice(0, 2));
    const taken = length === undefined ? undefined : take(text, match.index, length);
    if (taken && hasIbanChecksum(taken.characters)) found.push({ start: match.index, end: taken.end });
  }
  return found;
}

/** `length` letters and digits from a position on, blanks and dashes skipped; undefined when the text has others or goes on. */
function take(text: string, from: number, length: number): { characters: string; end: number } | undefined {
  const taken: number[] = [];
  let at = from;
  for (; taken.length < length && at - from < length + MAX_SEPARATORS; at += 1) {
    const unit = text.charCodeAt(at);
    if (isLetterOrDigit(unit)) taken.push(unit);
    else if (!isSeparator(unit)) return undefined;
  }
  if (taken.length < length || isLetterOrDigit(text.charCodeAt(at))) return undefined;
  return { characters: String.fromCharCode(...taken), end: at };
}

const isLetterOrDigit = (unit: number) => (unit >= 97 && unit <= 122) || (unit >= 48 && unit <= 57);
/** A blank, a line end, a dash or a dot. */
const isSeparator = (unit: number) => unit === 32 || unit === 10 || unit === 45 || unit === 46;
