import { expect } from "chai";
import type { ContentPart, Message } from "../../src/gateway/messages.ts";
import { anthropicModels } from "../../src/gateway/providers/anthropic/models.ts";
import { openAiModels } from "../../src/gateway/providers/openai/models.ts";
import { boundPromptTokens, estimateMessageTokens, pictureTokens, readPictureSize } from "../../src/gateway/tokens.ts";
import { linkedPdf, linkedPicture, pictureOf } from "../support/media.ts";

const modelOf = (id: string) => {
  const model = [...anthropicModels, ...openAiModels].find((one) => one.id === id);
  if (model === undefined) throw new Error(`no model ${id}`);
  return model;
};
const tokensOf = (model: string, url: string, detail?: "low" | "high" | "original") =>
  pictureTokens(detail === undefined ? { url } : { url, detail }, modelOf(model).pictures);
const bytes = (...parts: (string | number[])[]) =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part, "latin1") : Buffer.from(part))));
const filler = new Array<number>(40).fill(0);

describe("the size of a picture", () => {
  it("is read from the head of each format", () => {
    const png = Buffer.from(pictureOf(1024, 768).split(",")[1] ?? "", "base64");
    expect(readPictureSize(png)).to.deep.equal({ width: 1024, height: 768 });
    expect(readPictureSize(bytes("GIF89a", [0x40, 1, 0xf0, 0], filler))).to.deep.equal({ width: 320, height: 240 });
    const webp = (chunk: string, data: number[]) => bytes("RIFF\0\0\0\0WEBP", chunk, [0, 0, 0, 0], data, filler);
    const extended = webp("VP8X", [0, 0, 0, 0, 0x3f, 1, 0, 0xef, 0, 0]);
    expect(readPictureSize(extended)).to.deep.equal({ width: 320, height: 240 });
    const lossy = webp("VP8 ", [0, 0, 0, 0x9d, 1, 0x2a, 0x40, 1, 0xf0, 0]);
    expect(readPictureSize(lossy)).to.deep.equal({ width: 320, height: 240 });
    const lossless = webp("VP8L", [0x2f, 0x3f, 0xc1, 0x3b, 0]);
    expect(readPictureSize(lossless)).to.deep.equal({ width: 320, height: 240 });
    const app = [0xff, 0xe1, 0, 6, 1, 2, 3, 4];
    const frame = [0xff, 0xc2, 0, 17, 8, 0, 0xf0, 1, 0x40];
    const jpeg = bytes([0xff, 0xd8], app, [0xff, 0xc4, 0, 4, 9, 9], frame, filler);
    expect(readPictureSize(jpeg)).to.deep.equal({ width: 320, height: 240 });
  });

  it("is unknown where the head does not say it", () => {
    expect(readPictureSize(bytes("RIFF\0\0\0\0WEBPVP9 ", filler))).to.equal(undefined);
    expect(readPictureSize(bytes([0xff, 0xd8], filler, filler))).to.equal(undefined);
    expect(readPictureSize(bytes([0xff, 0xd8, 0xff, 0xe1, 0xff, 0xff], filler))).to.equal(undefined);
    expect(readPictureSize(bytes([0xff, 0xd8], new Array<number>(200_000).fill(0xff)))).to.equal(undefined);
    const segments = Array.from({ length: 100 }, () => [0xff, 0xe1, 0, 2]);
    const frame = [0xff, 0xc0, 0, 17, 8, 0, 0xf0, 1, 0x40];
    expect(readPictureSize(bytes([0xff, 0xd8], ...segments, frame, filler)), "too far down").to.equal(undefined);
    expect(readPictureSize(bytes([0xff, 0xd8], ...segments.slice(1), frame, filler))?.width).to.equal(320);
    expect(readPictureSize(bytes("GIF89a", filler))).to.equal(undefined);
    expect(readPictureSize(bytes("\x89PNG\r\n\x1a\n"))).to.equal(undefined);
    expect(readPictureSize(bytes("<svg>", filler))).to.equal(undefined);
  });
});

describe("the tokens of pictures and files", () => {
  it("are Anthropic's squares of 28 pixels, up to what a model sees", () => {
    const screenshot = pictureOf(1920, 1080);
    expect(tokensOf("claude-opus-5-5", screenshot)).to.equal(2_691);
    expect(tokensOf("claude-haiku-4-5-20251001", screenshot)).to.equal(1_568);
    expect(tokensOf("claude-haiku-4-5-20251001", pictureOf(200, 200))).to.equal(64);
    expect(tokensOf("claude-opus-5-5", linkedPicture)).to.equal(4_784);
    expect(tokensOf("claude-opus-5-5", linkedPicture, "low")).to.equal(4_784);
  });

  it("are OpenAI's squares of 32 pixels times the model's factor, or its tiles, by the detail", () => {
    const square = pictureOf(1024, 1024);
    expect(tokensOf("gpt-5.6-sol", square)).to.equal(1_229);
    expect(tokensOf("gpt-5.6-sol", square, "low")).to.equal(308);
    expect(tokensOf("gpt-5.6-sol", pictureOf(4_000, 3_000), "high")).to.equal(3_000);
    expect(tokensOf("gpt-5.6-sol", pictureOf(4_000, 3_000))).to.equal(14_100);
    expect(tokensOf("gpt-5.4", linkedPicture)).to.equal(3_000);
    expect(tokensOf("gpt-5.4", linkedPicture, "original")).to.equal(12_000);
    expect(tokensOf("gpt-4.1-mini", square)).to.equal(1_659);
    expect(tokensOf("gpt-4.1", square)).to.equal(765);
    expect(tokensOf("gpt-4.1", square, "low")).to.equal(85);
    expect(tokensOf("gpt-4.1", linkedPicture)).to.equal(1_445);
  });

  it("count instead of the characters of base64, which are no text", () => {
    const of = (part: ContentPart): Message[] => [{ role: "user", content: [part] }];
    const model = modelOf("claude-opus-4-6");
    const boundOf = (part: ContentPart) => boundPromptTokens({ model: model.id, messages: of(part) }, model);
    const picture: ContentPart = { type: "image", url: `${pictureOf(280, 280)}${"A".repeat(400_000)}` };
    expect(estimateMessageTokens(of(picture), model)).to.be.within(100, 110);
    expect(boundOf(picture)).to.be.within(100, 150);
    const pdfOf = (kib: number): ContentPart => {
      const data = Buffer.alloc(kib * 1_024).toString("base64");
      return { type: "file", url: `data:application/pdf;base64,${data}` };
    };
    // A page of 32 KiB is usual, and one of 1 KiB is small; it has 2,000 or 3,000 tokens of text, and a picture.
    expect(estimateMessageTokens(of(pdfOf(96)), model)).to.be.within(3 * 3_568, 4 * 3_568 + 10);
    expect(boundOf(pdfOf(96))).to.be.within(96 * 4_568, 98 * 4_568);
    expect(boundOf(pdfOf(4_000))).to.be.within(600 * 4_568, 601 * 4_568);
    expect(boundOf({ type: "file", url: linkedPdf })).to.equal(boundOf(pdfOf(4_000)));
  });

  it("are not less for reasoning that goes back than its text can have", () => {
    const item = { type: "thinking", thinking: "", signature: "s".repeat(4_000) };
    const parts = [{ type: "reasoning" as const, provider: "anthropic", item }];
    const messages: Message[] = [{ role: "assistant", content: "", parts }];
    expect(estimateMessageTokens(messages)).to.be.within(1_000, 1_050);
    expect(boundPromptTokens({ model: "m", messages }, {})).to.be.above(4_000);
  });
});
