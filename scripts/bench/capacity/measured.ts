import { readFile, writeFile } from "node:fs/promises";
import type { Check } from "./checks.ts";
import type { Demand, Kind } from "./demand.ts";
import type { Stock } from "./stock.ts";

/** What the bench has measured, on one machine; the page and its plan are made of it. */
export type Figures = {
  machine: { processor: string; cores: number; node: string; date: string };
  demands: Record<Kind, Demand>;
  /** Chunks of one large document; a small one has one. */
  largeDocumentChunks: number;
  stock: Stock;
  checks: Check[];
};

const file = new URL("./measured.json", import.meta.url);

export async function readFigures(): Promise<Figures> {
  return JSON.parse(await readFile(file, "utf8")) as Figures; // written by the function below
}

/** To four digits: no figure is known better. */
export async function writeFigures(figures: Figures): Promise<void> {
  const round = (_key: string, value: unknown) => {
    if (typeof value !== "number") return value;
    return Number.isFinite(value) ? Number(value.toPrecision(4)) : null;
  };
  await writeFile(file, `${JSON.stringify(figures, round, 2)}\n`);
}
