import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { languageFile } from "../../lib/ocr-languages.ts";
import { withTimeout } from "../../lib/with-timeout.ts";

/** How text in pictures is recognized: in which languages, and for how long in all, in ms. */
export type OcrOptions = { languages: readonly string[]; withinMs: number };

/** Of what is recognized with less confidence, in percent, nothing is kept: it is no text. */
const MIN_CONFIDENCE = 35;

/** Recognizes text in pictures of pages until its time is over. */
type Ocr = { msLeft(): number; read(picture: Uint8Array): Promise<string>; close(): Promise<void> };

/** Starts the recognition of text in a thread of this process. It takes its data from packages. @throws Error */
export async function startOcr({ languages, withinMs }: OcrOptions): Promise<Ocr> {
  const endsAt = performance.now() + withinMs;
  const msLeft = () => endsAt - performance.now();
  const { createWorker, OEM } = await import("tesseract.js");
  const langPath = await gatherLanguages(languages);
  const options = { langPath, cacheMethod: "none", errorHandler: () => undefined } as const; // what fails rejects, too
  const worker = await createWorker([...languages], OEM.LSTM_ONLY, options).finally(() =>
    rm(langPath, { recursive: true, force: true }),
  );
  return {
    msLeft,
    async read(picture) {
      const late = () => new Error("There is no time left to recognize text.");
      const { data: found } = await withTimeout(worker.recognize(Buffer.from(picture)), Math.max(1, msLeft()), late);
      return found.confidence >= MIN_CONFIDENCE ? found.text.trim() : "";
    },
    close: async () => void (await worker.terminate()),
  };
}

/** Puts the data of all languages into one folder, where the library looks for them: each has a package of its own. */
async function gatherLanguages(languages: readonly string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "switchyard-ocr-"));
  for (const code of languages) {
    const file = languageFile(code);
    if (file === undefined) throw new Error(`The data of the language ${code} are not installed.`);
    await copyFile(file, join(folder, basename(file)));
  }
  return folder;
}
