const fileEnding =
  /\.(?:dvi|tex|ps|eps|pdf|indd|indb|idml|qxd|qxp|fm|pmd|p65|pub|ai|cdr|svg|vsdx?|dwg|docx?|docm|dotx?|rtf|odt|ott|wpd|pages|xlsx?|ods|pptx?|ppsx?|odp|key|html?|txt|md|rst|tmp)$/i;
const program = /^(?:microsoft (?:word|excel|powerpoint|publisher|visio)|adobe \w+|quarkxpress|coreldraw|print) - /i;
const nothing =
  /^(?:untitled|unbenannt|ohne titel|sans titre|(?:new )?document|dokument|diapositive|slide|folie|title|titel|powerpoint[ -]pr\S+|no title|none|null)(?:[ _-]?\d+)?$/i;

/** Whether what a PDF's metadata name as its title is none: the name of a file, or what a program writes by itself. */
export function isNoTitle(title: string): boolean {
  return (
    fileEnding.test(title) || program.test(title) || nothing.test(title) || /^(?:[a-z]:\\|file:|\/)\S+/i.test(title)
  );
}
