/**
 * A line of a page: the size of its letters, the font that most of them have, and how high it stands. A whole table is one
 * line. What is no part of the running text, as a label that stands across, has no size. `isDrawn`: its size is a guess.
 */
export type Line = { text: string; size: number; font: string; y: number; isTable?: boolean; isDrawn?: boolean };
