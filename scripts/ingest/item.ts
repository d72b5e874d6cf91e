import type { Problem } from "./walk-folder.ts";

/** Something to load. `fingerprint` changes when it does. */
export type Item = {
  /** The same at every run: an absolute path, a URL, or a JSONL file with the number of the line. */
  id: string;
  /** The local file that it is, or that lists it. */
  file?: string;
  /** The glob that found it. */
  glob?: string;
  fingerprint: string;
  bytes: number;
  source:
    | { kind: "file"; path: string }
    | { kind: "url"; url: string }
    | { kind: "json"; body: Record<string, unknown> };
};

export type Found = {
  /** What should be loaded and cannot be. */
  problems: Problem[];
  /** Files of folders and globs that are left out on purpose. */
  leftOut: Problem[];
  /** What a person should know: which files are lists. */
  notes: string[];
  /** The folders and globs that were searched, as absolute paths. */
  folders: string[];
  globs: string[];
  /** The lists that were read whole. */
  lists: Set<string>;
};
