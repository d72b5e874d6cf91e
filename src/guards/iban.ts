import { hasIbanChecksum } from "./checksums.ts";
import type { GuardText } from "./guard-text.ts";
import { findLabels, labelPattern } from "./labels.ts";
import { findSpans, type Span } from "./spans.ts";

/** Lengths of the countries' IBANs (SWIFT's IBAN registry). */
const lengths =
  "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30";
const lengthOf = new Map(lengths.split(" ").map((entry) => [entry.slice(0, 2).toLowerCase(), Number(entry.slice(2))]));
const start = /(?:(?<![a-z0-9])|(?<=iban))[a-z]{2} ?\d{2}/g;
/** Characters, markup included, that one IBAN may take; more are another text. */
const MAX_LENGTH = 400;
/** What may part its groups: other characters than letters and digits, and tags. */
const parting = /(?:<\/?[a-z][^<>]{0,40}>|[^a-z0-9<]|<(?![/a-z])){1,4}/y;
const labels = labelPattern("iban", "international bank account(?: ?(?:number|no|num|#))?");
/** An IBAN's form, in one piece or in fours, whatever its country and its check digits. */
const form =
  /[a-z]{2}\d{2}(?:[a-z0-9]{11,30}|(?:[ ./_-]{1,2}[a-z0-9]{4}){2,7}(?:[ ./_-]{1,2}[a-z0-9]{1,4})?)(?![a-z0-9])/g;
const MIN_DIGITS_OF_FORM = 10;

/** IBANs (ISO 13616): a registered country, its length and the checksum are enough; under a label the form alone is. */
export function findIbans(source: GuardText): Span[] {
  const { text } = source;
  const found: Span[] = [];
  for (const match of text.matchAll(start)) {
    const length = lengthOf.get(match[0].slice(0, 2));
    const taken = length === undefined ? undefined : take(text, match.index, length);
    if (taken && hasIbanChecksum(taken.characters)) found.push({ start: match.index, end: taken.end });
  }
  const named = findLabels(source, labels);
  if (named.spans.length === 0) return found;
  const hasDigits = ({ start, end }: Span) => text.slice(start, end).replace(/\D/g, "").length >= MIN_DIGITS_OF_FORM;
  return [...found, ...findSpans(text, form).filter((span) => hasDigits(span) && named.nearness(span) === "direct")];
}

/** `length` letters and digits from a position on, separators skipped; undefined when the text has others or is longer. */
function take(text: string, from: number, length: number): { characters: string; end: number } | undefined {
  const taken: number[] = [];
  let at = from;
  while (taken.length < length && at < text.length && at - from < MAX_LENGTH) {
    const unit = text.charCodeAt(at);
    if (isLetterOrDigit(unit)) {
      taken.push(unit);
      at += 1;
      continue;
    }
    parting.lastIndex = at;
    if (!parting.test(text)) return undefined;
    at = parting.lastIndex;
  }
  if (taken.length < length || isLetterOrDigit(text.charCodeAt(at))) return undefined;
  return { characters: String.fromCharCode(...taken), end: at };
}

const isLetterOrDigit = (unit: number) => (unit >= 97 && unit <= 122) || (unit >= 48 && unit <= 57);
