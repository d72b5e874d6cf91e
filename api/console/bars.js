import { html } from "./html.js";

const [width, height] = [600, 90];

/**
 * Values over time, as bars. What they show is in the table of the same values too.
 * @param {{ label: string, unit?: string, points: readonly { name: string, value: number }[], show: (value: number) => string }} props
 */
export function Bars({ label, unit = "day", points, show }) {
  const most = Math.max(...points.map(({ value }) => value), 0);
  const step = width / Math.max(points.length, 1);
  const sum = points.reduce((total, { value }) => total + value, 0);
  return html`<figure class="bars">
    <figcaption>${label} <b>${show(sum)}</b></figcaption>
    <svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${label}, ${points.length} ${unit}s, at most ${show(most)} in one" preserveAspectRatio="none">
      ${points.map(({ name, value }, at) => {
        const size = most === 0 ? 0 : Math.max((value / most) * (height - 4), value > 0 ? 2 : 0);
        return html`<rect x=${at * step + 1} y=${height - size} width=${Math.max(step - 2, 1)} height=${size}><title>${name}: ${show(value)}</title></rect>`;
      })}
    </svg>
  </figure>`;
}
