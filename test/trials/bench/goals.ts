/** One line of the bench's table: what was measured, the anchor of the same run, and the bar. */
export type Measured = {
  what: string;
  anchor: string;
  product: string;
  /** Product against anchor, in the unit of `must`. */
  value: number;
  must: number;
  aim: number;
  /** Whether more is better (rates) or less (latencies, memory). */
  isMoreBetter: boolean;
  unit: string;
};

/** Whether a line meets its "must". */
export function meetsMust({ value, must, isMoreBetter }: Measured): boolean {
  return isMoreBetter ? value >= must : value <= must;
}

/** The lines as a Markdown table. */
export function toTable(lines: readonly Measured[]): string {
  const rows = lines.map((line) => {
    const verdict = meetsMust(line) ? (meetsMust({ ...line, must: line.aim }) ? "aim" : "must") : "**missed**";
    const cells = [line.what, line.anchor, line.product, `${format(line.value)}${line.unit}`];
    return `| ${[...cells, `${line.must}${line.unit}`, `${Number(line.aim.toFixed(2))}${line.unit}`, verdict].join(" | ")} |`;
  });
  return ["| what | anchor | product | result | must | aim | met |", "|---|---|---|---|---|---|---|", ...rows].join(
    "\n",
  );
}

export function format(value: number): string {
  if (!Number.isFinite(value)) return "n/a";
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
