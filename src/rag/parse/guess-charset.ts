/** Bytes that a guess is made from. */
const SAMPLE_BYTES = 65_536;
/** Bytes before the first that is not ASCII: what stands around it shows its language. */
const BEFORE = 4_096;
/** Measured on 3,500 texts of 22 languages: a guess of less confidence is right in three of four cases only. */
const MIN_CONFIDENCE = 0.15;
/** What the confidence of the next guess has to be below, at least, if it is one of another text. */
const MIN_LEAD = 0.005;
/** Below it there is no evidence at all: most such texts have a word or two of Western Europe. */
const NO_EVIDENCE = 0.05;
const FALLBACK = "windows-1252"; // it has a character for each byte

/** What browsers know, in the names of the detector. */
const candidates = [
  ..."big5 cp932 cp949 euc-jp gb18030 iso-2022-jp koi8-r koi8-u cp866 cp874 mac-cyrillic mac-roman".split(" "),
  ...["utf-16-le", "utf-16-be"],
  ...["1250", "1251", "1252", "1253", "1254", "1255", "1256", "1257", "1258"].map((page) => `windows-${page}`),
  ...["1", "2", "3", "4", "5", "6", "7", "8", "10", "13", "14", "15", "16"].map((part) => `iso-8859-${part}`),
];

/** Names in use that are no labels of browsers. */
const otherNames: Record<string, string> = {
  cp932: "shift_jis",
  cp936: "gbk",
  cp949: "euc-kr",
  cp950: "big5",
  cp874: "windows-874",
  macroman: "macintosh",
  maccyrillic: "x-mac-cyrillic",
  "iso8859-16": "iso-8859-16",
  "utf-16-le": "utf-16le",
  "utf-16-be": "utf-16be",
};

/** The browsers' name of a charset; undefined if they do not know it. */
export function charsetNamed(name: string): string | undefined {
  try {
    return new TextDecoder(otherNames[name.toLowerCase()] ?? name).encoding;
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** Guesses the charset of bytes that declare none and are not UTF-8. A guess is not sure if another one is as good. */
export async function guessCharset(bytes: Uint8Array): Promise<{ charset: string; isSure: boolean }> {
  const { detectAll } = await import("jschardet"); // its model takes a tenth of a second to load
  const sample = sampleOf(bytes);
  const found = detectAll(sample, { detectEncodings: candidates, minimumThreshold: 0 }).flatMap((guess) => {
    const charset = charsetNamed(guess.encoding ?? "");
    return charset === undefined ? [] : [{ charset, confidence: guess.confidence }];
  });
  const [best] = found;
  if (best === undefined || best.confidence < NO_EVIDENCE) return { charset: FALLBACK, isSure: false };
  const text = new TextDecoder(best.charset).decode(sample);
  const next = found.find(({ charset }) => new TextDecoder(charset).decode(sample) !== text);
  const lead = best.confidence - (next?.confidence ?? 0);
  return { charset: best.charset, isSure: best.confidence >= MIN_CONFIDENCE && lead >= MIN_LEAD };
}

/** The part of a text around its first byte that is not ASCII, without the tags of a page, which are of no language. */
function sampleOf(bytes: Uint8Array): Uint8Array {
  const first = Math.max(
    0,
    bytes.findIndex((byte) => byte > 0x7f || byte === 0 || byte === 0x1b),
  );
  const from = Math.max(0, first - BEFORE);
  const sample = bytes.subarray(from - (from % 2), from + SAMPLE_BYTES); // at an even place: characters may have two bytes
  if (sample.includes(0) || sample.includes(0x1b)) return sample; // in UTF-16 and ISO-2022 a letter may have the byte of a bracket
  const text = Buffer.from(sample).toString("latin1");
  return Buffer.from(text.replace(/<[^<>]*>/g, " ").replace(/[ \t\r\n]+/g, " "), "latin1");
}
