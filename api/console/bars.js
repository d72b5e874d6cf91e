import { Chart } from "./chart.js";
import { html } from "./html.js";

/**
 * One value for each day or hour, named as `2026-11-20` or `2026-11-20T13`.
 * @param {{ label: string, points: readonly { name: string, value: number }[], show: (value: number) => string }} props
 */
export function Bars({ label, points, show }) {
  const times = points.map(({ name }) => Date.parse(name.length === 13 ? `${name}:00Z` : name));
  const series = [{ name: label, values: points.map(({ value }) => value) }];
  return html`<${Chart} label=${label} times=${times} step=${points[0]?.name.length === 13 ? "hour" : "day"} series=${series} isStacked show=${show} />`;
}
