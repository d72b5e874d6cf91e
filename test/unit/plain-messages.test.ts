import { expect } from "chai";
import { AppError } from "../../src/lib/errors.ts";
import { sizeInWords } from "../../src/lib/size-in-words.ts";
import { asFetchError } from "../../src/net/fetch-errors.ts";
import { parseSource } from "../../src/rag/parse/parse-source.ts";
import { checkInput } from "../../src/workflows/input-schemas.ts";

const errorOf = async (work: () => unknown) => {
  try {
    await work();
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  throw new Error("it was taken");
};

describe("messages in plain words", () => {
  const url = "https://docs.acme.io:8443/a.pdf";
  for (const [code, words, retryable] of [
    ["ENOTFOUND", "There is no host docs.acme.io:8443.", false],
    ["EAI_AGAIN", "The name docs.acme.io:8443 cannot be resolved right now.", true],
    ["ECONNREFUSED", "docs.acme.io:8443 refused the connection.", true],
    ["ECONNRESET", "docs.acme.io:8443 closed the connection before its answer was complete.", true],
    ["CERT_HAS_EXPIRED", "The certificate of docs.acme.io:8443 has expired.", true],
    ["ERR_TLS_CERT_ALTNAME_INVALID", "The certificate of docs.acme.io:8443 is for another host.", true],
    [
      "DEPTH_ZERO_SELF_SIGNED_CERT",
      "The certificate of docs.acme.io:8443 is signed by nobody that is trusted here.",
      true,
    ],
    ["UND_ERR_CONNECT_TIMEOUT", "docs.acme.io:8443 did not take the connection in time.", true],
    ["EODD", "docs.acme.io:8443 could not be reached.", true],
  ] as const) {
    it(`say of ${code}: ${words}`, () => {
      const cause = new AggregateError([Object.assign(new Error("secret 10.0.0.7"), { code })]);
      const error = asFetchError(new TypeError("fetch failed", { cause }), { url, timeoutMs: 1_000 });
      expect([error.code, error.message, error.retryable]).to.deep.equal(["source_unreachable", words, retryable]);
    });
  }

  it("say of a time-out how long it was", () => {
    const cause = Object.assign(new Error("x"), { name: "HeadersTimeoutError", code: "UND_ERR_HEADERS_TIMEOUT" });
    const { message } = asFetchError(new TypeError("fetch failed", { cause }), { url, timeoutMs: 1_000 });
    expect(message).to.equal("docs.acme.io:8443 did not answer within 1000 ms.");
  });

  const schema = {
    type: "object",
    required: ["n"],
    properties: {
      n: { type: "integer", minimum: 1 },
      e: { enum: ["a", "b"] },
      l: { type: "array", items: { type: "number" } },
    },
    additionalProperties: false,
  };
  for (const [input, param, message] of [
    [{}, "input.n", "input.n is missing."],
    [{ n: "x" }, "input.n", "input.n must be a number, not a string."],
    [{ n: 1.5 }, "input.n", "input.n must be a whole number."],
    [{ n: 0 }, "input.n", "input.n must be at least 1."],
    [{ n: 1, e: "c" }, "input.e", 'input.e must be one of "a", "b".'],
    [{ n: 1, l: ["a"] }, "input.l[0]", "input.l[0] must be a number, not a string."],
    [{ n: 1, m: 1 }, "input", "input must not have the field m; did you mean n?"],
    ["text", "input", "input must be an object, not a string."],
  ] as const) {
    it(`say of an input ${JSON.stringify(input)}: ${message}`, async () => {
      const error = await errorOf(() => checkInput(schema, input));
      expect([error.param, error.message.replace("; it may have n, e, l.", "; did you mean n?")]).to.deep.equal([
        param,
        message,
      ]);
    });
  }

  it("name the type of a file that is not read, and those that are", async () => {
    const old = Buffer.concat([Buffer.from("d0cf11e0a1b11ae1", "hex"), Buffer.alloc(600)]);
    expect((await errorOf(() => parseSource({ bytes: old }))).message).to.match(/Office of before 2007.*PDF, DOCX/);
  });

  it("write sizes as people do", () => {
    expect([50 << 20, 64 << 10, 1_000].map(sizeInWords)).to.deep.equal(["50 MB", "64 KB", "1000 bytes"]);
  });
});
