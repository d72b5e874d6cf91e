import { expect } from "chai";
import { parseSource } from "../../src/rag/parse/parse-source.ts";
import { encode } from "../support/encode.ts";

const read = async (bytes: Buffer, hints: { type?: string; name?: string } = {}) => {
  const { sections, warnings = [] } = await parseSource({ bytes, ...hints });
  return { text: sections.map(({ text }) => text).join("\n"), warnings };
};
const fails = (bytes: Buffer) =>
  read(bytes).then(
    () => "",
    (error: Error) => error.message,
  );

/** Sentences of manuals, each in charsets that its language was written in. */
const sentences: [string, string[]][] = [
  ["水泵的排气阀在春天打开，压力为十六巴。请先关闭电源，然后再打开阀门。", ["gbk", "gb18030"]],
  ["警告：請先關閉電源，然後再打開閥門。壓力表顯示十六巴。", ["big5"]],
  ["ポンプの弁を開く前に、電源を切ってください。圧力は十六バールです。", ["shift_jis", "euc-jp"]],
  ["펌프의 밸브를 열기 전에 전원을 끄십시오. 압력은 십육 바입니다.", ["euc-kr"]],
  ["Насос прокачивают весной, давление шестнадцать бар.", ["koi8-r", "windows-1251", "iso-8859-5", "ibm866"]],
  ["Перед відкриттям клапана вимкніть живлення насоса, будь ласка.", ["koi8-u"]],
  ["Перед пуском насоса откройте клапан и проверьте давление масла.", ["x-mac-cyrillic"]],
  ["Πριν ανοίξετε τη βαλβίδα, κλείστε την παροχή ρεύματος της αντλίας.", ["iso-8859-7", "windows-1253"]],
  ["Před otevřením ventilu vypněte napájení čerpadla a počkejte, až tlak klesne.", ["windows-1250"]],
  ["Przed otwarciem zaworu wyłącz zasilanie pompy i sprawdź ciśnienie.", ["iso-8859-2"]],
  ["קודם כל כבו את המשאבה, ורק אחר כך פתחו את השסתום.", ["windows-1255"]],
  ["أغلق مصدر الطاقة قبل فتح الصمام، ثم انتظر حتى ينخفض الضغط.", ["windows-1256"]],
  ["Vor dem Öffnen des Ventils die Pumpe abschalten und den Überdruck ablassen.", ["windows-1252", "macintosh"]],
  ["Avant d’ouvrir la vanne, coupez l’arrivée d’électricité à côté de la pompe.", ["windows-1252", "macintosh"]],
];

describe("the charset of a text", () => {
  for (const [text, charsets] of sentences) {
    for (const charset of charsets) {
      it(`is guessed: ${charset}, ${text.slice(0, 12)}`, async () => {
        expect((await read(encode(text, charset), { name: "a.txt" })).text).to.equal(text);
      });
    }
  }

  for (const charset of ["utf-16le", "utf-16be"]) {
    it(`is guessed without a byte order mark: ${charset}`, async () => {
      const texts = [
        "The valve opens.\nThen wait.",
        "Насос включать\nтолько весной",
        "水泵的排气阀，夜里结霜。\n第二行",
      ];
      for (const text of texts) {
        const bytes = Buffer.from(text, "utf16le");
        expect(await read(charset === "utf-16be" ? bytes.swap16() : bytes)).to.deep.equal({ text, warnings: [] });
      }
    });
  }

  it("is what its sender declares, before what the bytes look like", async () => {
    const short = "Öl"; // two bytes are no evidence of anything
    for (const charset of ["macintosh", "windows-1257", "latin1"]) {
      const type = `text/plain; charset=${charset}`;
      const { text, warnings } = await read(encode(short, charset), { type });
      expect({ text, warnings }, charset).to.deep.equal({ text: short, warnings: [] });
    }
    const named = await read(encode("電源", "shift_jis"), { type: 'text/plain; format=flowed; charset="CP932"' });
    expect(named.text).to.equal("電源");
  });

  it("is what a page or XML declares of itself, if its sender declares nothing", async () => {
    const pages = [
      '<html><head><meta charset="koi8-r"></head><body>Вода</body></html>',
      '<html><head><meta http-equiv="Content-Type" content="text/html; charset=koi8-r"></head><body>Вода</body></html>',
      '<?xml version="1.0" encoding="koi8-r"?><html><body>Вода</body></html>',
    ];
    for (const page of pages) expect(await read(encode(page, "koi8-r"))).to.deep.equal({ text: "Вода", warnings: [] });
    const sent = await read(encode(pages[0] ?? "", "windows-1251"), { type: "text/html; charset=windows-1251" });
    expect(sent.text).to.equal("Вода");
  });

  it("is another one than the declared, with a warning, if the bytes contradict that", async () => {
    const text = "Насос прокачивают весной, давление шестнадцать бар.";
    const wrong: [Buffer, string, string][] = [
      [encode(text, "koi8-r"), "utf-8", "koi8-r"],
      [encode(text, "koi8-r"), "no-such-charset", "koi8-r"],
      [Buffer.from(text), "iso-8859-1", "utf-8"],
    ];
    for (const [bytes, declared, found] of wrong) {
      const answer = await read(bytes, { type: `text/plain; charset=${declared}` });
      expect(answer.text, declared).to.equal(text);
      expect(answer.warnings, declared).to.have.lengthOf(1);
      expect(answer.warnings[0]?.code).to.equal("charset_uncertain");
      expect(answer.warnings[0]?.message).to.contain(declared).and.to.contain(found);
    }
    const ascii = await read(Buffer.from("plain"), { type: "text/plain; charset=no-such-charset" });
    expect(ascii).to.deep.equal({ text: "plain", warnings: [] });
  });

  it("is named in a warning if the guess may be wrong", async () => {
    const { warnings } = await read(encode("Öl: 5 bar", "windows-1252"));
    expect(warnings[0]?.code).to.equal("charset_uncertain");
    expect(warnings[0]?.message).to.contain("windows-1252");
  });

  it("stays UTF-8 where one character of many is damaged, and the loss is told", async () => {
    const good = Buffer.from("Grüße aus München, schöne Öfen, Käse, Türen ");
    const { text, warnings } = await read(Buffer.concat([good, Buffer.from([0xe4]), Buffer.from(" Ende")]));
    expect(text).to.equal("Grüße aus München, schöne Öfen, Käse, Türen \ufffd Ende");
    expect(warnings.map(({ code }) => code)).to.deep.equal(["charset_uncertain"]);
  });
});

describe("what is no text in a text", () => {
  it("is left out: colours of terminals, titles of their windows, letters that are struck twice", async () => {
    const codes =
      "\x1b[31mERROR\x1b[0m pump \x1b[1;4mfailed\x1b(B\x1b[m\n\x1b]0;window\x07see \x1b]8;;http://x\x1b\\log\x1b]8;;\x1b\\";
    expect((await read(Buffer.from(codes))).text).to.equal("ERROR pump failed\nsee log");
    expect((await read(Buffer.from("N\bNA\bAM\bME\bE\n  _\bf_\bi_\bl_\be"))).text).to.equal("NAME\n  file");
    expect((await read(Buffer.from("a\x1b]0;a title that never ends"))).text).to.contain("never ends");
  });

  it("ends a line where a page, a line of another system or a gap of a log ends one", async () => {
    const text = "one\ftwo\vthree\u0085four\u2028five\rsix";
    expect((await read(Buffer.from(text))).text.split("\n")).to.have.lengthOf(6);
    const log = `${"2026-01-01 valve opened\n".repeat(20)}2026-01-02 cut${"\0".repeat(500)}2026-01-03 Grüße\n`;
    expect((await read(Buffer.from(log), { name: "a.log" })).text).to.contain("2026-01-02 cut\n2026-01-03 Grüße");
  });

  it("is named if there is too much of it", async () => {
    expect(await fails(Buffer.from("a\0bc\0d\0"))).to.contain("NULs");
    expect(await fails(Buffer.alloc(1_000)))
      .to.contain("neither text")
      .and.to.contain("NULs");
  });
});
