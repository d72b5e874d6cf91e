import type { Hit } from "../demo/client.ts";

/** A question of a reader, and the passages of which each answers it, in any manual. Blanks and line ends do not count. */
export type Question = { ask: string; answers: readonly string[] };
/** A PDF manual in a Debian package, compressed where the path says so. */
export type Manual = { package: string; path: string; questions: readonly Question[] };

/** Ten manuals of different kinds, from 66 to 711 pages. */
export const manuals: readonly Manual[] = [
  {
    package: "bash-doc",
    path: "usr/share/doc/bash/bashref.pdf",
    questions: [
      {
        ask: "How can a pipeline return a failure status if any of its commands fails?",
        answers: [
          "the pipeline’s return status is the value of the last (rightmost) command to exit",
          "the return value of a pipeline is the value of the last (rightmost) command to exit",
          "will cause a pipeline to return a failure status if any command fails",
        ],
      },
      {
        ask: "Which variable makes the history show the time of each command?",
        answers: [
          "strftime to print the time stamp associated with each history entry",
          "for strftime to display the time stamp associated with each displayed history entry",
        ],
      },
    ],
  },
  {
    package: "gnuplot-doc",
    path: "usr/share/doc/gnuplot/gnuplot.pdf",
    questions: [
      {
        ask: "How do I draw several plots on the same page?",
        answers: ["the multiplot mode, in which several plots are placed next"],
      },
      {
        ask: "How do I declare which string marks missing data in a file?",
        answers: ["there is a special string used in input data files to denote a missing data entry"],
      },
    ],
  },
  {
    package: "developers-reference",
    path: "usr/share/developers-reference/developers-reference.pdf",
    questions: [
      {
        ask: "How do I upload a package so that it reaches the archive only some days later?",
        answers: ["but to want this package to arrive in the archive only a few days later"],
      },
      {
        ask: "What must I do when I can no longer maintain a package?",
        answers: ["If you can no longer maintain a package, you need to inform others"],
      },
    ],
  },
  {
    package: "debian-policy",
    path: "usr/share/doc/debian-policy/policy.pdf.gz",
    questions: [
      {
        ask: "What should packages do that supply the same command name, so that they can be installed together?",
        answers: ["All packages which supply an instance of a common command name"],
      },
      {
        ask: "What must happen to local changes in configuration files when a package is upgraded?",
        answers: ["local changes must be preserved during a package upgrade"],
      },
    ],
  },
  {
    package: "debian-faq",
    path: "usr/share/doc/debian/FAQ/debian-faq.en.pdf.gz",
    questions: [
      {
        ask: "How do I put a package on hold so that it is not upgraded?",
        answers: ["There are three ways of holding back packages"],
      },
      {
        ask: "Where do the names of Debian's releases come from?",
        answers: ["characters taken from the ”Toy Story” movies by Pixar"],
      },
    ],
  },
  {
    package: "r-doc-pdf",
    path: "usr/share/R/doc/manual/R-intro.pdf",
    questions: [
      {
        ask: "How do I test which elements of a vector are missing?",
        answers: ["The function is.na(x) gives a logical vector"],
      },
      {
        ask: "What happens when vectors of different lengths are added?",
        answers: ["Shorter vectors in the expression are recycled"],
      },
    ],
  },
  {
    package: "asymptote-doc",
    path: "usr/share/doc/asymptote/asymptote.pdf",
    questions: [
      {
        ask: "How can I make an animated GIF?",
        answers: [
          "This module allows one to generate animations",
          // The question names no program, and gnuplot's manual answers it too: `set term gif animate` and `set output`.
          "The gif terminal animate option creates a single gif file containing multiple frames",
        ],
      },
      {
        ask: "How do I output a drawing in landscape orientation?",
        answers: ["may be modified by changing the variable orientation. To output in landscape"],
      },
    ],
  },
  {
    package: "zsh-doc",
    path: "usr/share/doc/zsh-common/zsh.pdf",
    questions: [
      {
        ask: "How do several running shells share one command history?",
        answers: ["This option both imports new commands from the history file"],
      },
      {
        ask: "How do I rename many files by a pattern?",
        answers: [
          "Move (usually, rename) files matching the pattern",
          "a command for renaming files by means of shell patterns",
        ],
      },
    ],
  },
  {
    package: "ngspice-doc",
    path: "usr/share/doc/ngspice-doc/manual.pdf.gz",
    questions: [
      {
        ask: "At which temperature is a circuit simulated by default?",
        answers: ["The default temperature is set to 27"],
      },
      {
        ask: "How do I sweep a voltage source in a DC analysis?",
        answers: ["defines the dc transfer curve source and sweep limits"],
      },
    ],
  },
  {
    package: "nut-doc",
    path: "usr/share/doc/nut-doc/pdf/user-manual.pdf",
    questions: [
      {
        ask: "Which file says at shutdown that the UPS must be powered off?",
        answers: [
          "The upsmon will create this file when the UPS needs to be powered off",
          "This checks for the POWERDOWNFLAG, finds it",
        ],
      },
      {
        ask: "How do I avoid many notifications when the power fails for a few seconds only?",
        answers: ["might generate a notification storm"],
      },
    ],
  },
];

/** Other manuals of the same packages: they are loaded beside the ten, and deleted again. */
export const others: readonly Omit<Manual, "questions">[] = [
  { package: "bash-doc", path: "usr/share/doc/bash/bash.pdf" },
  { package: "asymptote-doc", path: "usr/share/doc/asymptote/asy-latex.pdf" },
  { package: "debian-policy", path: "usr/share/doc/debian-policy/fhs/fhs-3.0.pdf.gz" },
  { package: "r-doc-pdf", path: "usr/share/R/doc/manual/R-lang.pdf" },
  { package: "r-doc-pdf", path: "usr/share/R/doc/manual/R-admin.pdf" },
  { package: "nut-doc", path: "usr/share/doc/nut-doc/pdf/developer-guide.pdf" },
];

/** The place of the first hit that answers, from 1; 0 when there is none. */
export function placeOf(hits: readonly Hit[], { answers }: Pick<Question, "answers">): number {
  const fold = (text: string) => text.replace(/\s+/g, " ");
  return 1 + hits.findIndex(({ content }) => answers.some((answer) => fold(content).includes(answer)));
}
