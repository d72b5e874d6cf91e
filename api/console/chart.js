import { useEffect, useRef, useState } from "preact/hooks";
import { Download } from "./export.js";
import { html } from "./html.js";

/** Values over time, drawn by uPlot, which is loaded with the first chart. */

const HEIGHT = 190;
/** Colours that series have in turn: the classes `c1` to `c9` of the style. */
const COLOURS = 9;

/** @type {Promise<any> | undefined} */
let library;

/** uPlot and its style. A failure is forgotten, so that the next chart tries again. */
function loadLibrary() {
  library ??= Promise.all([import("uplot"), loadStyle()]).then(
    ([{ default: Plot }]) => Plot,
    (error) => {
      library = undefined;
      throw error;
    },
  );
  return library;
}

/** @returns {Promise<void>} */
const loadStyle = () =>
  new Promise((resolve, reject) => {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = "/console/files/uplot.css";
    link.onload = () => resolve();
    link.onerror = () => reject(new Error("The style of charts does not load."));
    document.head.append(link);
  });

/**
 * @typedef {{ name: string, values: readonly (number | null)[], isBefore?: boolean }} Series
 * `isBefore`: of the range before, drawn as a line
 * @typedef {{ label: string, times: readonly number[], step: string, series: readonly Series[], isStacked?: boolean, show: (value: number, step?: number) => string }} ChartProps
 * `show`: a value as a text, on the axis so that values a step apart differ
 */

/** The data as it is drawn: of a stack, each series stands on those after it. @param {ChartProps} props */
function toData({ times, series, isStacked }) {
  if (!isStacked) return [times, ...series.map(({ values }) => values)];
  const sums = times.map(() => 0);
  const stacked = series.toReversed().map(({ values, isBefore }) => {
    if (isBefore) return values;
    for (const [at, value] of values.entries()) sums[at] = (sums[at] ?? 0) + (value ?? 0);
    return [...sums];
  });
  return [times, ...stacked.toReversed()];
}

/** @param {string} step @param {number} time */
const showTime = (step, time) =>
  step === "day"
    ? new Date(time).toLocaleDateString(undefined, { timeZone: "UTC" })
    : new Date(time).toLocaleString(undefined, { dateStyle: "short", timeStyle: "short" });

const stepMs = /** @type {Record<string, number>} */ ({ minute: 60_000, hour: 3_600_000, day: 86_400_000 });

/** Of the axis of values, in px: the least, of a letter, and besides the letters. */
const [LEAST_WIDTH, LETTER_WIDTH, AROUND_LETTERS] = [62, 8, 20];

/** Steps of the axis of values: no parts of what is counted in whole numbers. @param {readonly Series[]} series */
function stepsFor(series) {
  const areWhole = series.every(({ values }) => values.every((value) => Number.isInteger(value ?? 0)));
  const powers = Array.from({ length: areWhole ? 16 : 22 }, (_, place) => 10 ** (place - (areWhole ? 0 : 6)));
  return powers.flatMap((power) => [1, 2, 5].map((times) => times * power));
}

/** The width of the axis of values: that of its longest text. @param {any} _ @param {readonly string[] | null} texts */
const widthOf = (_, texts) =>
  Math.max(LEAST_WIDTH, AROUND_LETTERS + LETTER_WIDTH * Math.max(0, ...(texts ?? []).map(({ length }) => length)));

/**
 * What uPlot is to draw. Colours are read from the page when it draws, so that they follow light and dark.
 * @param {any} Plot @param {ChartProps} props @param {{ colourOf: (name: string) => string, width: number, onCursor: (at: number | null) => void }} about
 */
function toOptions(Plot, { step, series, isStacked, show }, { colourOf, width, onCursor }) {
  const half = (stepMs[step] ?? 0) / 2;
  const axis = {
    stroke: () => colourOf("text"),
    grid: { stroke: () => colourOf("grid"), width: 1 },
    ticks: { stroke: () => colourOf("grid"), width: 1 },
  };
  /** @param {Series} one @param {number} at */
  const toSeries = ({ name, isBefore }, at) => {
    const colour = () => colourOf(isBefore ? "text" : `c${(at % COLOURS) + 1}`);
    const isBar = isStacked && !isBefore;
    return {
      label: name,
      stroke: colour,
      width: isBar ? 0 : 2,
      points: { show: !isBar && !isBefore, size: 4 },
      ...(isBar ? { fill: colour, paths: Plot.paths.bars({ size: [0.8, 60] }) } : {}),
      ...(isBefore ? { dash: [5, 4] } : {}),
    };
  };
  return {
    width,
    height: HEIGHT,
    ms: 1,
    ...(step === "day" ? { tzDate: (/** @type {number} */ time) => Plot.tzDate(new Date(time), "Etc/UTC") } : {}),
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, y: false, points: { show: !isStacked } },
    scales: {
      x: {
        range: (/** @type {any} */ _, /** @type {number} */ min, /** @type {number} */ max) => [min - half, max + half],
      },
      y: {
        range: (/** @type {any} */ _, /** @type {number} */ _min, /** @type {number | null} */ max) => [
          0,
          max ? max * 1.08 : 1,
        ],
      },
    },
    axes: [
      { ...axis, values: undefined },
      {
        ...axis,
        size: widthOf,
        incrs: stepsFor(series),
        values: (
          /** @type {any} */ _,
          /** @type {number[]} */ ticks,
          /** @type {number} */ _axis,
          /** @type {number} */ _space,
          /** @type {number} */ apart,
        ) => ticks.map((tick) => show(tick, apart)),
      },
    ],
    series: [{}, ...series.map(toSeries)],
    hooks: { setCursor: [(/** @type {any} */ plot) => onCursor(plot.cursor.idx ?? null)] },
  };
}

/** Draws in an element, which holds the swatches that the colours are read from. Returns what ends it. @param {HTMLElement} root @param {ChartProps} props @param {(at: number | null) => void} onCursor */
function draw(root, props, onCursor) {
  const canvas = /** @type {HTMLElement} */ (root.querySelector(".plot"));
  /** @param {string} name */
  const colourOf = (name) => {
    const probe = root.querySelector(`.swatch.${name}`);
    return probe ? getComputedStyle(probe).backgroundColor : "gray";
  };
  /** @type {any} */
  let plot;
  let isEnded = false;
  const resize = new ResizeObserver(() => plot?.setSize({ width: canvas.clientWidth, height: HEIGHT }));
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const redraw = () => plot?.redraw();
  /** @param {number} at */
  const pointAt = (at) => plot.setCursor({ left: plot.valToPos(props.times[at], "x"), top: 10 });
  /** @param {TouchEvent} event */
  const touch = (event) => {
    const [finger] = event.touches;
    if (plot && finger) plot.setCursor({ left: finger.clientX - plot.over.getBoundingClientRect().left, top: 10 });
  };
  /** @param {KeyboardEvent} event */
  const key = (event) => {
    const by = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
    if (!plot || by === 0) return;
    event.preventDefault();
    const last = props.times.length - 1;
    const from = plot.cursor.idx ?? (by > 0 ? -1 : last + 1);
    pointAt(Math.min(Math.max(from + by, 0), last));
  };
  loadLibrary().then((Plot) => {
    if (isEnded) return;
    const options = toOptions(Plot, props, { colourOf, width: canvas.clientWidth, onCursor });
    plot = new Plot(options, toData(props), canvas);
    resize.observe(canvas);
  });
  canvas.addEventListener("touchstart", touch, { passive: true });
  canvas.addEventListener("touchmove", touch, { passive: true });
  canvas.addEventListener("keydown", key);
  scheme.addEventListener("change", redraw);
  return () => {
    isEnded = true;
    resize.disconnect();
    scheme.removeEventListener("change", redraw);
    canvas.removeEventListener("touchstart", touch);
    canvas.removeEventListener("touchmove", touch);
    canvas.removeEventListener("keydown", key);
    plot?.destroy();
  };
}

/**
 * A chart with its legend, which shows the sums, or the values at the pointer: by mouse, finger, or the arrow keys.
 * `sum`: what stands beside the label instead of the sum of all values.
 * @param {ChartProps & { sum?: string }} props
 */
export function Chart(props) {
  const { label, times, step, series, show, sum, isStacked } = props;
  const root = useRef(/** @type {HTMLElement | null} */ (null));
  const [at, setAt] = useState(/** @type {number | null} */ (null));
  const content = JSON.stringify([times, step, series, isStacked]);
  useEffect(() => (root.current ? draw(root.current, props, setAt) : undefined), [content]);
  const now = series.filter(({ isBefore }) => !isBefore);
  const all = now
    .flatMap(({ values }) => values)
    .reduce((/** @type {number} */ total, value) => total + (value ?? 0), 0);
  const shown = sum ?? show(all);
  /** @param {Series} one @param {number} index */
  const entry = ({ name, values, isBefore }, index) => {
    const value = at === null ? undefined : values[at];
    return html`<li><span class="swatch ${isBefore ? "text" : `c${(index % COLOURS) + 1}`}"></span> ${name}${at === null ? null : html` <b>${value === null || value === undefined ? "–" : show(value)}</b>`}</li>`;
  };
  const rows = times.map((time, place) => ({
    time: new Date(time).toISOString(),
    ...Object.fromEntries(series.map(({ name, values }) => [name, values[place] ?? null])),
  }));
  return html`<figure class="chart" ref=${root}>
    <figcaption>${label} <b>${shown}</b> <span class="meta">${at === null ? "" : showTime(step, times[at] ?? 0)}</span></figcaption>
    <span class="swatch text" hidden></span><span class="swatch grid" hidden></span>
    <div class="plot" tabindex="0" role="img" aria-label="${label}, ${times.length} ${step}s, ${shown}. Arrow keys show single values."></div>
    <ul class="legend" hidden=${series.length === 1 && at === null}>${series.map(entry)}</ul>
    <${Download} name=${label} rows=${rows} />
  </figure>`;
}
