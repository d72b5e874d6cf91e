/** The properties of a DOM node that the reader of HTML uses; linkedom's own types need the DOM library, which Node has not. */
export type DomNode = {
  nodeType: number;
  nodeName: string;
  textContent: string | null;
  childNodes: Iterable<DomNode>;
  parentNode: DomNode | null;
  previousSibling: DomNode | null;
  nextSibling: DomNode | null;
  getAttribute?(name: string): string | null;
  setAttribute?(name: string, value: string): void;
  getAttributeNames?(): string[];
};

/** Values of `nodeType`. */
export const ELEMENT = 1;
export const TEXT = 3;

/**
 * Visits all nodes below one, in the order of the document. `enter` says whether to go into an element; `leave` is called
 * after one that was entered. It keeps its own stack, so that no depth of markup is too much.
 */
export function walk(
  root: DomNode,
  enter: (node: DomNode) => boolean,
  leave: (node: DomNode) => void = () => {},
): void {
  const open = [{ node: root, children: root.childNodes[Symbol.iterator]() }];
  for (let last = open.at(-1); last !== undefined; last = open.at(-1)) {
    const { done, value: node } = last.children.next();
    if (done) {
      open.pop();
      if (last.node !== root) leave(last.node);
    } else if (enter(node)) open.push({ node, children: node.childNodes[Symbol.iterator]() });
  }
}
