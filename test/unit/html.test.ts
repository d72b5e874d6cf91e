import { expect } from "chai";
import { parseHtml } from "../../src/rag/parse/html.ts";
import { makeProse } from "../support/documents.ts";

const read = (html: string) => {
  const { sections, title, warnings = [] } = parseHtml(html);
  return {
    text: sections.map(({ text }) => text).join("\n"),
    title,
    codes: warnings.map(({ code }) => code),
    warnings,
  };
};
const textOf = (html: string) => read(html).text;
const paragraphs = (count: number) => `<p>${makeProse(30)}</p>`.repeat(count);
const menu = (count: number) =>
  `<ul>${Array.from({ length: count }, (_, n) => `<li><a href="/${n}">Target ${n}</a></li>`).join("")}</ul>`;

describe("what is kept of a page", () => {
  it("is all of its own words where the article has less than 85 % of them", () => {
    const half = `<div class="content">${paragraphs(6)}</div><div class="more"><p>BESIDE ${makeProse(60)}</p></div>`;
    expect(textOf(`<html><body>${half}</body></html>`)).to.contain("BESIDE");
    const commands = Array.from({ length: 40 }, (_, n) => `<dl><dt>--option-${n}</dt><dd><p>Does ${n}.</p></dd></dl>`);
    const manual = `<html><body><div>${paragraphs(1)}</div>${commands.join("")}</body></html>`;
    expect(textOf(manual).match(/--option-/g)).to.have.lengthOf(40);
  });

  it("is the article and the remarks around it where that has 85 %, and a share below 90 % is told", () => {
    const page = (foot: string) =>
      `<html><body><header><h1>Pump P-9</h1></header><div class="sidebar caution"><p>CAUTION: hot.</p></div>
      <main><h2>Care</h2>${paragraphs(8)}<aside>WARNING: switch it off.</aside></main>
      <aside>REMARK: see below.</aside><div class="footer"><p>${foot}</p></div></body></html>`;
    const short = read(page("IMPRINT of a company."));
    expect(short.text).to.contain("CAUTION").and.contain("WARNING").and.contain("REMARK").and.contain("Pump P-9");
    expect(short.codes).to.deep.equal([]);
    const longer = read(page(`IMPRINT ${makeProse(30)}`));
    expect(longer.text).not.to.contain("IMPRINT");
    expect(longer.codes).to.deep.equal(["text_left_out"]);
    expect(longer.warnings[0]?.message).to.match(/8\d % of the page's own words/);
    expect(textOf(page(`IMPRINT ${makeProse(90)}`))).to.contain("IMPRINT");
  });

  it("are boxes of every class, in an article and beside it", () => {
    const classes =
      "comment sidebar sidebarblock note remark legend header MsoHeader MsoFooter related menu popup".split(" ");
    const boxes = classes.map((name) => `<div class="${name}"><p>The box of ${name} is read.</p></div>`).join("");
    const text = textOf(`<html><body><article><h1>Boxes</h1>${paragraphs(8)}${boxes}</article></body></html>`);
    for (const name of classes) expect(text).to.contain(`The box of ${name} is read.`);
  });

  it("is not what is hidden or leads to other pages: navigation, banners, searches, lists of links", () => {
    const left = `<nav>NAV</nav><div hidden>HIDDEN</div><div role="navigation">ROLE1</div><div role="banner">ROLE2</div>
      <div role="contentinfo">ROLE3</div><div role="search">ROLE4</div><search>SEARCH</search>${menu(8)}`;
    const text = textOf(`<html><body>${left}<p>${makeProse(30)}</p><p hidden="until-found">FOUND</p></body></html>`);
    expect(text).not.to.match(/NAV|HIDDEN|ROLE|SEARCH|Target/);
    expect(text).to.contain("FOUND");
  });

  it("are links in sentences and lists of more than links, and all of a page that is a list of links", () => {
    const list = "<ul><li><a href='/a'>P-9</a>: for water only.</li><li><a href='/b'>P-10</a>: for oil only.</li></ul>";
    expect(textOf(`<p>See <a href="/x">the manual</a>.</p>${list}`))
      .to.contain("See the manual.")
      .and.contain("- P-9: for water");
    expect(textOf(`<h1>Contents</h1>${menu(20)}`).match(/- Target/g)).to.have.lengthOf(20);
  });

  it("is the text of a page with odd tags: without a body, after its end, with an open head, in XHTML", () => {
    expect(read("<!doctype html><title>Pumps</title><p>TEXT</p>")).to.include({ text: "TEXT", title: "Pumps" });
    expect(textOf("<body><p>TEXT")).to.equal("TEXT");
    expect(textOf("<html><head><title>T</title><h1>H</h1><p>TEXT</p>")).to.contain("TEXT");
    expect(textOf("<html><body><p>ONE</p></body><p>TWO</p></html><p>THREE</p>")).to.match(/ONE\s+TWO\s+THREE/);
    const xhtml =
      '<?xml version="1.0"?><html><head><title/><script src="x"/></head><body><a id="y"/><p>TEXT<br/>END</p></body></html>';
    expect(textOf(xhtml)).to.equal("TEXT\nEND");
  });

  it("is the same however the names of its attributes are written", () => {
    const list = '<OL START="4"><LI>x</LI></OL>';
    const { text, codes } = read(
      `<HTML><BODY><DIV Hidden="">HIDDEN</DIV><IMG ALT="Cut of P-9"SRC="a.png"><P>a</P>${list}</BODY></HTML>`,
    );
    expect(text).to.match(/^Cut of P-9\s+a\s+4\. x$/);
    expect(codes).to.deep.equal([]);
  });

  it("says how many pictures and objects have no text, but not of ornaments", () => {
    const { text, warnings } = read(
      `<p>${makeProse(9)}</p><img src="a.png"><img src="b.png"><img src="c.png" alt="Cut of P-9"><img src="d.png" alt="">
      <img src="e.gif" width="1" height="1"><iframe src="f"></iframe><svg><title>Flow</title><text>Inlet</text></svg>`,
    );
    expect(text).to.contain("Cut of P-9").and.contain("Inlet");
    expect(warnings).to.deep.equal([
      {
        code: "parts_left_out",
        message:
          "It does not hold what the page shows in 2 pictures without a text of their own and one embedded object.",
      },
    ]);
  });
});

describe("the numbers of a page's lists", () => {
  const items = (count: number) => "<li>x</li>".repeat(count);
  const marks = (html: string) =>
    textOf(html)
      .split("\n")
      .map((line) => line.replace(/ .*/, ""));

  it("go on from `start` and `value`, and back in a reversed list", () => {
    expect(marks(`<ol>${items(3)}</ol>`)).to.deep.equal(["1.", "2.", "3."]);
    expect(marks(`<ol start="9">${items(2)}<li value="20">x</li>${items(1)}</ol>`)).to.deep.equal([
      "9.",
      "10.",
      "20.",
      "21.",
    ]);
    expect(marks(`<ol reversed>${items(3)}</ol>`)).to.deep.equal(["3.", "2.", "1."]);
    expect(marks(`<ol reversed start="10">${items(2)}</ol>`)).to.deep.equal(["10.", "9."]);
    expect(marks(`<ol start="-1">${items(2)}</ol>`)).to.deep.equal(["-1.", "0."]);
  });

  it("go on after a remark, and around a list of letters", () => {
    const steps = `<ol><li>Open.</li><li>Wait.</li></ol><p>A remark.</p><ol start="3"><li>Close.<ol type="a"><li>Left</li>
      <li>Right</li></ol></li><li value="7">Seventh.</li></ol>`;
    const lines = textOf(steps).split(/\s*\n+/);
    expect(lines).to.deep.equal([
      "1. Open.",
      "2. Wait.",
      "A remark.",
      "3. Close.",
      "a) Left",
      "b) Right",
      "7. Seventh.",
    ]);
  });

  it("are letters and Roman numerals by `type`, style or class", () => {
    expect(marks(`<ol type="a" start="26">${items(2)}</ol>`)).to.deep.equal(["z)", "aa)"]);
    expect(marks(`<ol type="A">${items(2)}</ol>`)).to.deep.equal(["A)", "B)"]);
    expect(marks(`<ol type="i" start="4">${items(2)}</ol>`)).to.deep.equal(["iv)", "v)"]);
    expect(marks(`<ol type="I" start="1994">${items(1)}</ol>`)).to.deep.equal(["MCMXCIV)"]);
    expect(marks(`<ol style="list-style-type: lower-roman">${items(2)}</ol>`)).to.deep.equal(["i)", "ii)"]);
    expect(marks(`<ol class="upperalpha simple">${items(2)}</ol>`)).to.deep.equal(["A)", "B)"]);
    expect(marks(`<ol style="list-style: none">${items(2)}</ol>`)).to.deep.equal(["-", "-"]);
  });

  it("stand on the line of their text, also in lists of lists and of paragraphs", () => {
    const nested =
      "<ol><li><p>Close it.</p><ol type='a'><li><p>left</p></li><li>right</li></ol></li><li>End.</li></ol>";
    expect(textOf(nested).split(/\n+/)).to.deep.equal(["1. Close it.", "a) left", "b) right", "2. End."]);
    expect(textOf("<ol><li><ul><li>x</li></ul></li></ol><ul><li>y</li></ul>").split(/\n+/)).to.deep.equal([
      "1.",
      "- x",
      "- y",
    ]);
  });
});

describe("what a page shows by its form", () => {
  it("are superscripts and subscripts of numbers and words", () => {
    const shown: [string, string][] = [
      ["10<sup>6</sup> per litre", "10^6 per litre"],
      ["10<sup>−6</sup> m", "10^−6 m"],
      ["H<sub>2</sub>SO<sub>4</sub>", "H_2SO_4"],
      ["x<sub>i</sub><sup>2</sup>", "x_i^2"],
      ["x<sup>n + 1</sup>", "x^(n + 1)"],
      ["e<sup>x<sup>2</sup></sup>", "e^(x^2)"],
      ["<sup>14</sup>C", "^14C"],
      ["(a + b)<sup>2</sup>", "(a + b)^2"],
      ["note<sup>12</sup> of it", "note^12 of it"],
      ["P-9<sup>®</sup>, the 1<sup>st</sup>", "P-9®, the 1st"],
      ["<sup>1</sup> A note", "1 A note"],
      ["<sub>A long sentence in small letters, which is no subscript of anything at all.</sub>", "A long sentence"],
    ];
    for (const [html, text] of shown) expect(textOf(`<p>${html}</p>`), html).to.contain(text);
    const table = "<table><tr><th>m<sup>2</sup><th>b</tr><tr><td>10<sup>6</sup><td>CO<sub>2</sub></tr></table>";
    expect(textOf(table)).to.contain("| m^2 | b |").and.contain("| 10^6 | CO_2 |");
    expect(parseHtml("<h2>About 10<sup>6</sup></h2><p>x</p>").sections[0]?.headings).to.deep.equal(["About 10^6"]);
    expect(textOf("<pre>10<sup>6</sup></pre>")).to.contain("10^6");
  });

  it("are formulas, on one line", () => {
    const sum = "<mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow>";
    const shown: [string, string][] = [
      [`<mfrac>${sum}<mn>2</mn></mfrac>`, "(a+b)/2"],
      ["<msup><mn>10</mn><mn>6</mn></msup>", "10^6"],
      ["<msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup>", "x_i^2"],
      [`<semantics><msqrt>${sum}</msqrt><annotation>\\sqrt{a+b}</annotation></semantics>`, "sqrt(a+b)"],
    ];
    for (const [math, text] of shown)
      expect(textOf(`<p>Then<math>${math}</math>holds.</p>`)).to.equal(`Then ${text} holds.`);
  });

  it("are formulas and readings once, and parts of a page on lines of their own", () => {
    const twice = '<span><span><math><mi>x</mi><mn>2</mn></math></span><span aria-hidden="true">x2</span></span>';
    expect(textOf(`<p>So ${twice} it is. <span aria-hidden="true">Seen.</span></p>`)).to.equal("So x2 it is. Seen.");
    expect(textOf("<p><ruby>弁<rt>べん</rt></ruby>と<ruby>圧<rp>（</rp><rt>あつ</rt><rp>）</rp></ruby></p>")).to.equal(
      "弁(べん)と圧(あつ)",
    );
    expect(textOf("<details><summary>More</summary>Text</details><address>Street</address>")).to.match(
      /^More\s+Text\s+Street$/,
    );
  });

  it("is struck text, in lines, cells, headings and code", () => {
    expect(textOf("<p>was <del>17 bar</del> <ins>19 bar</ins>, <s>99 </s>79</p>")).to.equal(
      "was ~~17 bar~~ 19 bar, ~~99~~ 79",
    );
    expect(textOf("<del><p>One.</p><p>Two <b>and</b> three.</p></del><p>Four.</p>")).to.match(
      /^~~One\.~~\n+~~Two and three\.~~\n+Four\.$/,
    );
    expect(textOf("<table><tr><th>a<th>b</tr><tr><td><strike>1</strike> 2<td>3</tr></table>")).to.contain(
      "| ~~1~~ 2 | 3 |",
    );
    expect(textOf("<del><table><tr><td>a<td>b</tr><tr><td>1<td>2</tr></table></del>")).to.contain("| a | b |");
    expect(textOf("<h2><s>Old</s> New</h2>")).to.equal("~~Old~~ New");
    expect(textOf("<del><h2>Old</h2></del><p>x</p>")).to.contain("~~Old~~");
  });

  it("is code with its lines, between fences that it does not hold", () => {
    expect(textOf('<pre><code class="language-js">\nif (wet) {\n    stop();\n}\n</code></pre>')).to.equal(
      "```js\nif (wet) {\n    stop();\n}\n```",
    );
    expect(textOf("<pre>a<br>```\nb</pre>")).to.equal("````\na\n```\nb\n````");
    expect(textOf("<p>a</p><pre>  </pre><p>b</p>")).to.equal("a\n\nb");
    expect(textOf("<pre><div>one</div><div>  two</div></pre>")).to.equal("```\none\n  two\n```");
  });

  it("are pictures' texts, apart from the words around them", () => {
    expect(textOf('<p>Press<img alt="the red button">now.</p>')).to.equal("Press the red button now.");
    expect(textOf('<p>E = <img alt="mc^2">, then</p>')).to.equal("E = mc^2, then");
    expect(textOf('<table><tr><td>a<td>b</tr><tr><td><img alt="Valve"><td>2</tr></table>')).to.contain("| Valve | 2 |");
    expect(textOf("<h1>A</h1><h2><img alt='Start'></h2><p>x</p>")).to.contain("Start");
  });
});
