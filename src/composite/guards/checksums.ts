/** Luhn's check digit (ISO/IEC 7812-1, annex B) over a string of ASCII digits. */
export function hasLuhnDigit(digits: string): boolean {
  let sum = 0;
  for (let index = 0; index < digits.length; index += 1) {
    const digit = digits.charCodeAt(digits.length - 1 - index) - 48;
    const doubled = index % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
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
  const weights = [3, 7, 1];
  let sum = 0;
  for (let index = 0; index < digits.length; index += 1) sum += Number(digits[index]) * (weights[index % 3] ?? 0);
  return digits.length === 9 && sum % 10 === 0;
}

/** The check digit of a British NHS number (mod 11, weights 10 to 2). */
export function hasNhsChecksum(digits: string): boolean {
  let sum = 0;
  for (let index = 0; index < 9; index += 1) sum += Number(digits[index]) * (10 - index);
  const check = 11 - (sum % 11);
  return digits.length === 10 && (check === 11 ? 0 : check) === Number(digits[9]);
}
