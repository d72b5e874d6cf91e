import { expect } from "chai";
import { toCel } from "../../src/workflows/cel-values.ts";
import { ExpressionProblem, makeRoom, type Scope } from "../../src/workflows/expressions.ts";
import { parseTemplate } from "../../src/workflows/templates.ts";

const base = "https://api.acme.io";
const fill = (template: string, input: unknown) => {
  const scope: Scope = { input: toCel(input), steps: new Map(), previous: null, run: new Map() };
  return parseTemplate(template).fillUrl(scope, makeRoom());
};

describe("values in a URL", () => {
  const good: [template: string, input: unknown, url: string][] = [
    [`${base}/orders/{{ input }}`, "A 1", `${base}/orders/A%201`],
    [`${base}/orders/{{ input }}/lines`, "a/../b?x=1#y", `${base}/orders/a%2F..%2Fb%3Fx%3D1%23y/lines`],
    [`${base}/orders/{{ input }}`, "a\\b%2e\r\n", `${base}/orders/a%5Cb%252e%0D%0A`],
    [`${base}/orders/{{ input }}`, 7, `${base}/orders/7`],
    [`${base}/orders/{{ input }}`, "9007199254740993", `${base}/orders/9007199254740993`],
    [`${base}/o-{{ input }}.json`, "..", `${base}/o-...json`],
    [`${base}/orders{{ input }}`, "", `${base}/orders`],
    [`${base}/orders{{ input }}`, "/1", `${base}/orders%2F1`],
    [`${base}/s?q={{ input }}&n=1`, "a&n=2 ü+", `${base}/s?q=a%26n%3D2%20%C3%BC%2B&n=1`],
    [`${base}/s?q={{ input }}`, "", `${base}/s?q=`],
    [`${base}/s?q={{ input }}`, ["a"], `${base}/s?q=%5B%22a%22%5D`],
    [`${base}?u={{ input }}`, "https://b.io/x?y", `${base}?u=https%3A%2F%2Fb.io%2Fx%3Fy`],
    [`${base}/#{{ input }}`, "a b", `${base}/#a%20b`],
    ["https://{{ input }}.acme.io/x", "eu-1", "https://eu-1.acme.io/x"],
    ["https://{{ input }}/x", "eu.acme.io:8443", "https://eu.acme.io:8443/x"],
    ["https://acme.io:{{ input }}/x", 8443, "https://acme.io:8443/x"],
    ["{{ input }}", "https://b.io/a b?x=1", "https://b.io/a b?x=1"],
    [" {{ input }} ", "https://b.io/a", " https://b.io/a "],
    ["{{ input.base }}/orders/{{ input.id }}", { base: "https://b.io/v1", id: "a/b" }, "https://b.io/v1/orders/a%2Fb"],
    [`${base}/{{ input.a }}/{{ input.b }}?c={{ input.a }}`, { a: "?", b: "#" }, `${base}/%3F/%23?c=%3F`],
  ];
  for (const [template, input, url] of good) {
    it(`${template} with ${JSON.stringify(input)} is ${url}`, () => {
      expect(fill(template, input)).to.equal(url);
      const [before, after] = [template.replace(/\{\{.*?\}\}/g, "1"), url].map((text) => text.trim());
      if (!template.trim().startsWith("{{") && before !== undefined && after !== undefined) {
        const depth = (text: string) => new URL(text).pathname.split("/").length;
        expect(depth(after), "as deep as it was written").to.equal(depth(before));
      }
    });
  }

  const refused: [template: string, input: unknown, problem: RegExp][] = [
    [`${base}/orders/{{ input }}`, "..", /\.\./],
    [`${base}/orders/{{ input }}`, ".", /\./],
    [`${base}/orders/.{{ input }}/x`, ".", /\.\./],
    [`${base}/orders/{{ input }}`, "", /empty/],
    [`${base}/orders/{{ input }}?x=1`, null, /empty/],
    [`${base}/{{ input }}/lines`, "", /empty/],
    ["https://{{ input }}.acme.io/x", "evil.com/", /host/],
    ["https://{{ input }}.acme.io/x", "evil.com#", /host/],
    ["https://acme.io{{ input }}/x", ".evil.com", /host/],
    ["https://acme.io{{ input }}/x", "@evil.com", /host/],
    ["https://{{ input }}/x", "a@evil.com", /host/],
    ["https://{{ input }}/x", "evil.com\\", /host/],
  ];
  for (const [template, input, problem] of refused) {
    it(`${template} with ${JSON.stringify(input)} has none`, () => {
      expect(() => fill(template, input)).to.throw(ExpressionProblem, problem);
    });
  }
});
