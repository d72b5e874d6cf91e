import type { Numbering } from "./docx-numbering.ts";
import type { Styles } from "./docx-styles.ts";
import type { Grid, Repetition } from "./office-grid.ts";
import type { Inline } from "./office-inline.ts";
import type { LeftOut } from "./office-left-out.ts";
import type { XmlNode } from "./office-xml.ts";

/** A paragraph, a table or a note of a document. */
export type Block = {
  /** Empty if it is a table. */
  text: string;
  table?: Grid;
  /** Of a heading, from 1. */
  heading?: number;
  isTitle?: boolean;
  isItem?: boolean;
};

/** What is known of a document while its parts are read one after the other. */
export type DocxContext = {
  styles: Styles;
  numbering: Numbering;
  repetition: Repetition;
  leftOut: LeftOut;
  /** The texts of charts and diagrams, by the id of the relationship. */
  graphics: ReadonlyMap<string, string>;
  /** Footnotes and endnotes, by `f` or `e` and their id. */
  notes: Map<string, XmlNode>;
  /** How many of them were met. */
  noted: { f: number; e: number };
  /** The marks of the notes that were met, by the same. */
  marks: Map<string, string>;
  /** The notes that are to be written after the block that is read. */
  due: string[];
  /** The text of a paragraph whose end was deleted: it belongs to the next one. */
  held: Inline[];
};
