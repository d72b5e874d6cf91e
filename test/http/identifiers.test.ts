import { expect } from "chai";
import { forEachConcurrent } from "../../src/lib/for-each-concurrent.ts";
import { identifierKeys } from "../../src/rag/identifiers.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

/** What a text has, and how it is asked for; each has a near one beside it. */
const asked: readonly (readonly [text: string, query: string])[] = [
  ["E-04", "E04"],
  ["E-40", "e 40"],
  ["E-44", "E.44"],
  ["DN 50", "DN50"],
  ["DN 500", "dn-500"],
  ["DN65", "DN 65"],
  ["PN16", "PN 16"],
  ["PN 6", "pn6"],
  ["RS 232", "RS232"],
  ["RS-422", "RS 422"],
  ["RS485", "rs-485"],
  ["IP 67", "IP67"],
  ["IP76", "IP 76"],
  ["ISO 9001", "ISO9001"],
  ["ISO 9010", "iso-9010"],
  ["EN 60204-1", "EN60204-1"],
  ["EN 60204-11", "en 6020411"],
  ["IEC 61508-3", "IEC61508-3"],
  ["DIN 912", "DIN912"],
  ["DIN 921", "din-921"],
  ["AB-1234-C", "AB1234C"],
  ["AB-1243-C", "AB 1243 C"],
  ["AC-1234-B", "AC 1234-B"],
  ["4711-22", "471122"],
  ["4711-23", "4711/23"],
  ["M8 x 20", "M8x20"],
  ["M8x25", "M8 x 25"],
  ["M10 × 20", "M10x20"],
  ["10 bar", "10bar"],
  ["16bar", "16 bar"],
  ["2.5 kW", "2.5kW"],
  ["25 kW", "25kW"],
  ["2,2 kW", "2.2kw"],
  ["230 V", "230V"],
  ["320V", "320 V"],
  ["1,250 mm", "1250mm"],
  ["1,520 mm", "1520 mm"],
  ["25 °C", "25°C"],
  ["52 °C", "52 C"],
  ["USB 3.0", "USB3.0"],
  ["USB 2.0", "usb-2.0"],
  ["Python 3.12", "Python3.12"],
  ["Python 3.11", "python-3.11"],
  ["TLS 1.3", "TLSv1.3 or TLS1.3"],
  ["TLS 1.2", "tls1.2"],
  ["PA-66", "PA66"],
  ["PA 6", "PA6"],
  ["F-32", "F 32"],
  ["F23", "F-23"],
  ["K 7", "K7"],
  ["LM317", "LM 317"],
  ["LM-371", "LM371"],
  ["XR_2206", "XR2206"],
  ["XR_2260", "XR 2260"],
  ["S7/1200", "S7-1200"],
  ["S7-1500", "S7 1500"],
  ["HP 4", "HP4"],
  ["HP14", "HP 14"],
  ["CR2032", "CR 2032"],
  ["CR 2023", "CR2023"],
];

describe("identifiers and quantities in another spelling than the text has", function () {
  this.timeout(60_000);
  let test: TestPlatform;
  let client: ApiClient;
  before(async () => {
    test = await startPlatform();
    client = makeClient({ url: test.url, key: test.keys.member });
    await forEachConcurrent(asked.entries(), 6, async ([at, [text]]) => {
      const content = `Entry: the item ${text} is described on page ${at + 10}.`;
      const made = await client.post("/rag/ingest", { content, title: `entry ${at}` });
      expect(made.status, made.text).to.equal(201);
    });
  });
  after(() => test?.close());

  const missedBy = async (mode: string) => {
    const missed: string[] = [];
    for (const [at, [text, query]] of asked.entries()) {
      const found = await client.post("/rag/query", { query, mode, topK: 5 });
      const titles = (found.at("results") as { title: string }[]).map(({ title }) => title);
      if (!titles.includes(`entry ${at}`)) missed.push(`${text} by ${query}`);
    }
    return missed;
  };

  it("are among the first five, by words and vectors", async () => {
    expect(await missedBy("hybrid")).to.deep.equal([]);
  });

  it("are among the first five by words alone", async () => {
    expect(await missedBy("lexical")).to.deep.equal([]);
  });

  it("rank the passage with the same identifier first, before one with a similar identifier", async () => {
    for (const [query, text] of [
      ["E04", "E-04"],
      ["DN50", "DN 50"],
      ["2.5kW", "2.5 kW"],
      ["25kW", "25 kW"],
      ["LM 317", "LM317"],
    ]) {
      const found = await client.post("/rag/query", { query, mode: "hybrid", topK: 3 });
      expect(found.string("results[0].content"), query).to.include(` ${text} `);
    }
  });
});

describe("words with characters that nobody sees, or in another form of their letters", () => {
  it("are found in plain spelling, and find plain spelling if typed in that form", async () => {
    const test = await startPlatform();
    try {
      const client = makeClient({ url: test.url, key: test.keys.member });
      const texts: Record<string, string> = {
        hyphen: "Das \u00dcber\u00addruck\u00adventil \u00f6ffnet.",
        space: "The back\u200bpressure is high.",
        joiner: "The feed\u2060water is cold.",
        ligature: "A \ufb01lter is in the \ufb02ow.",
        wide: "\uff30\uff35\uff2d\uff30 \uff34\uff19\uff10 is loud.",
        plain: "The waterhammer of pipe T80 was found.",
      };
      for (const [title, content] of Object.entries(texts)) {
        expect((await client.post("/rag/ingest", { title, content })).status).to.equal(201);
      }
      for (const [query, title] of [
        ["\u00dcberdruckventil", "hyphen"],
        ["backpressure", "space"],
        ["feedwater", "joiner"],
        ["filter", "ligature"],
        ["flow", "ligature"],
        ["PUMP", "wide"],
        ["T90", "wide"],
        ["water\u00adhammer", "plain"],
        ["\uff34\uff18\uff10", "plain"],
      ]) {
        const found = await client.post("/rag/query", { query, mode: "lexical" });
        expect(found.at("results[0].title"), query).to.equal(title);
      }
    } finally {
      await test.close();
    }
  });
});

describe("the identifiers of a text", () => {
  for (const text of [
    "In 1999 the 5 pumps were sold to 12 people at 3 places.",
    "Figure 3.2 shows it, as Table 4.1 and Section 2.3 do.",
    "The well-known back-to-back test; see page 7.",
    "Mach 2 flow over a plate.",
  ]) {
    it(`are none in: ${text}`, () => {
      expect(identifierKeys(text)).to.deep.equal([]);
    });
  }

  it("are read quickly and bounded, whatever the text holds", () => {
    for (const text of ["1-".repeat(10_000), "A 1 ".repeat(10_000), "1,".repeat(10_000), "x".repeat(20_000)]) {
      expect(identifierKeys(text).length).to.be.at.most(420);
    }
  });
});
