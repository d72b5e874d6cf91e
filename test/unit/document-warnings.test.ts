import { expect } from "chai";
import { AppError } from "../../src/lib/errors.ts";
import { assertComplete, boundWarnings } from "../../src/rag/warnings.ts";
import type { DocumentWarning } from "../../src/store/document-warning.ts";

const left = (message: string): DocumentWarning => ({ code: "parts_left_out", message });
const ocr: DocumentWarning = { code: "read_by_ocr", message: "Page 2 was read by OCR.", pages: [2] };

describe("the warnings of a document", () => {
  it("are bounded in number, length and pages, and say how many more there are", () => {
    const pages = Array.from({ length: 5_000 }, (_, index) => index + 1);
    const long: DocumentWarning = { code: "text_left_out", message: "x".repeat(100_000), pages };
    const kept = boundWarnings([ocr, long, ...Array.from({ length: 500 }, (_, n) => left(`Picture ${n}.`))]);
    expect(kept).to.have.length(20);
    expect(kept[0]?.pages).to.have.length(100);
    expect(kept[0]?.message).to.have.length(500);
    expect(kept.at(-1)).to.deep.equal({ code: "parts_left_out", message: "483 further warnings are not shown." });
  });

  it("stay as they are within the bounds, those of a loss first", () => {
    expect(boundWarnings([])).to.deep.equal([]);
    expect(boundWarnings([ocr, left("A picture.")])).to.deep.equal([left("A picture."), ocr]);
  });

  it("refuse a source that must be complete, unless nothing is lost", () => {
    assertComplete([]);
    assertComplete([ocr]);
    const refuse = () => assertComplete([left("A picture."), ocr]);
    expect(refuse).to.throw(AppError, "A picture.");
    try {
      refuse();
    } catch (error) {
      expect((error as AppError).code).to.equal("source_incomplete");
      expect((error as AppError).details).to.deep.equal({ warnings: [left("A picture.")] });
    }
  });
});
