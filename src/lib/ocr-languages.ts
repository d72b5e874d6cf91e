import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const require = createRequire(import.meta.url);

/** What a text in a picture is recognized in: codes as `eng`, of one language at least. */
const isLanguageCode = (text: string): boolean => /^[a-z]{3}(?:_[a-z]{2,5})?$/i.test(text);

/** The file of a language's data in its npm package, or nothing where that is not installed. Nothing is downloaded. */
export function languageFile(code: string): string | undefined {
  if (!isLanguageCode(code)) return undefined;
  try {
    const folder = dirname(require.resolve(`@tesseract.js-data/${code}/package.json`));
    const file = join(folder, "4.0.0_best_int", `${code}.traineddata.gz`);
    return existsSync(file) ? file : undefined;
  } catch {
    return undefined; // the package is not there
  }
}
