/** Luhn's check digit (ISO/IEC 7812-1, annex B) over a string of ASCII digits. */
export function hasLuhnDigit(digits: string): boolean {
  const sum = sumOf(digits, (digit, index) => {
    const value = (digits.length - index) % 2 === 0 ? digit * 2 : digit;
    return value > 9 ? value - 9 : value;
  });
  return sum % 10 === 0;
}

/** ISO 7064 mod 97-10 as ISO 13616 uses it, of an IBAN in lower case: its first four places move to the end, `a` counts 10. */
export function hasIbanChecksum(iban: string): boolean {
  let rest = 0;
  for (let index = 0; index < iban.length; index += 1) {
    const unit = iban.charCodeAt((index + 4) % iban.length);
    const value = unit > 57 ? unit - 87 : unit - 48;
    rest = (rest * (value > 9 ? 100 : 10) + value) % 97;
  }
  return rest === 1;
}

/** The 3-7-1 checksum of the nine digits of an ABA routing number. */
export function hasAbaChecksum(digits: string): boolean {
  return digits.length === 9 && sumOf(digits, (digit, index) => digit * ([3, 7, 1][index % 3] ?? 0)) % 10 === 0;
}

/** The check digit of a British NHS number (mod 11, weights 10 to 1). */
export function hasNhsChecksum(digits: string): boolean {
  return digits.length === 10 && sumOf(digits, (digit, index) => digit * (10 - index)) % 11 === 0;
}

/** The sum of what each digit counts. */
function sumOf(digits: string, toValue: (digit: number, index: number) => number): number {
  let sum = 0;
  for (let index = 0; index < digits.length; index += 1) sum += toValue(digits.charCodeAt(index) - 48, index);
  return sum;
}
