/** The properties of a DOM node that the reader of HTML uses; linkedom's own types need the DOM library, which Node has not. */
export type DomNode = {
  nodeType: number;
  nodeName: string;
  textContent: string | null;
  childNodes: Iterable<DomNode>;
  getAttribute?(name: string): string | null;
};

/** Values of `nodeType`. */
export const ELEMENT = 1;
export const TEXT = 3;
