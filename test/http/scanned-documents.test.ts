import { expect } from "chai";
import { makeClient } from "../support/http-client.ts";
import { makeScannedPdf } from "../support/scans.ts";
import { startPlatform } from "../support/start-platform.ts";

const text = "A pump moves water from one place to another, for as long as its motor turns.";
const pages = [{ text }, { shows: ["Replace the gasket every", "400 hours, when cold."] }, { text }];

describe("a PDF with a scanned page between two pages of text", function () {
  this.timeout(120_000);
  const upload = async (env: Record<string, string>) => {
    const test = await startPlatform({ env });
    const client = makeClient({ url: test.url, key: test.keys.member });
    const form = new FormData();
    form.set("file", new File([new Uint8Array(await makeScannedPdf(pages))], "scan.pdf"));
    const made = await client.request("POST", "/rag/ingest", { raw: form, headers: { prefer: "wait=90" } });
    expect(made.status, made.text).to.equal(201);
    const found = await client.post("/rag/query", { query: "gasket", mode: "lexical" });
    return { test, made, found };
  };

  it("is found by a word of the scan, and says that it was read by OCR", async () => {
    const { test, made, found } = await upload({ OCR_LANGUAGES: "eng" });
    try {
      expect(found.at("results[0].page")).to.equal(2);
      expect(found.string("results[0].content")).to.match(/gasket every/);
      expect(made.at("warnings[0].code")).to.equal("read_by_ocr");
      expect(made.at("warnings[0].pages")).to.deep.equal([2]);
    } finally {
      await test.close();
    }
  });

  it("names the page in its warnings without OCR", async () => {
    const { test, made, found } = await upload({});
    try {
      expect(found.at("results")).to.deep.equal([]);
      expect(made.at("warnings[0].code")).to.equal("pages_without_text");
      expect(made.at("warnings[0].pages")).to.deep.equal([2]);
    } finally {
      await test.close();
    }
  });
});
