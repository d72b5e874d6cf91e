import type { OfficePackage } from "./office-package.ts";
import { childOf, findAll, readTree, textIn, type XmlNode } from "./office-xml.ts";
import { toMarkdownTable } from "./table.ts";

const MAX_POINTS = 10_000; // of a chart; one of more is a picture

/** The texts of the charts and diagrams that a part shows, by the id of the relationship. */
export async function readGraphics(file: OfficePackage, part: string): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>();
  for (const { id, type, target } of (await file.relationships(part)).values()) {
    if ((type !== "chart" && type !== "diagramData") || !file.has(target)) continue;
    const root = await readTree(file.read(target));
    const text = type === "chart" ? writeChart(root) : writeDiagram(root);
    if (text !== "") texts.set(id, text);
  }
  return texts;
}

/** The texts of a diagram's boxes, one a line. */
function writeDiagram(root: XmlNode): string {
  const points = findAll(root, "dgm:pt").filter(({ attributes }) => (attributes.type ?? "node") === "node");
  const texts = points.map((point) => findAll(point, "a:t").map(textIn).join("").trim());
  return texts
    .filter((text) => text !== "")
    .map((text) => `- ${text}`)
    .join("\n");
}

/** The title of a chart, and the values that it shows as a table of its series. */
function writeChart(root: XmlNode): string {
  const chart = childOf(root, "c:chart");
  const title = findAll(childOf(chart, "c:title") ?? empty, "a:t")
    .map(textIn)
    .join("")
    .trim();
  const series = findAll(childOf(chart, "c:plotArea") ?? empty, "c:ser");
  const names = series.map((one) => [...pointsOf(childOf(one, "c:tx")).values()].join(" "));
  const labels = pointsOf(childOf(series[0], "c:cat") ?? childOf(series[0], "c:xVal"));
  const values = series.map((one) => pointsOf(childOf(one, "c:val") ?? childOf(one, "c:yVal")));
  const places = [...new Set(values.flatMap((points) => [...points.keys()]))].sort((left, right) => left - right);
  if (places.length === 0 || places.length * (series.length + 1) > MAX_POINTS) return title;
  const rows = places.map((at) => [labels.get(at) ?? "", ...values.map((points) => points.get(at) ?? "")]);
  return `${title === "" ? "" : `${title}\n\n`}${toMarkdownTable({ rows: [["", ...names], ...rows] })}`;
}

const empty: XmlNode = { name: "", attributes: {}, children: [] };

/** The points of a series that the document has stored, by their places. */
function pointsOf(node: XmlNode | undefined): Map<number, string> {
  const points = findAll(node ?? empty, "c:pt").slice(0, MAX_POINTS);
  return new Map(
    points.map((point, at) => {
      const value = childOf(point, "c:v");
      const text = value ? textIn(value).replace(/\s+/g, " ").trim() : "";
      return [
        Number.parseInt(point.attributes.idx ?? "", 10) || (point.attributes.idx === "0" ? 0 : at),
        tidyNumber(text),
      ];
    }),
  );
}

/** A number without the noise of its last digits. */
function tidyNumber(text: string): string {
  return /^-?\d+\.\d{12,}$/.test(text) ? String(Number(Number(text).toPrecision(12))) : text;
}
