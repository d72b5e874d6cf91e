/** The steps of a workflow's run as a tree. */

/** @typedef {{ step: any, branch: string, within: Node[] }} Node */

/**
 * Each step with those within it, by their paths: `2/branches/legal/0` is within `2`. One whose outer step has not ended, and is
 * not shown yet, stands beside the others; `branch` says in any case of which list of that step it is.
 * @param {readonly any[]} steps
 * @returns {Node[]}
 */
export function toTree(steps) {
  /** @type {Map<string, Node>} */
  const nodes = new Map(steps.map((step) => [step.path, { step, branch: branchOf(step.path), within: [] }]));
  /** @type {Node[]} */
  const roots = [];
  for (const node of nodes.values()) (outerOf(node.step.path, nodes)?.within ?? roots).push(node);
  return roots;
}

/** @param {string} path @param {ReadonlyMap<string, Node>} nodes */
function outerOf(path, nodes) {
  for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1)) {
    const found = nodes.get(path.slice(0, end));
    if (found) return found;
  }
  return undefined;
}

/** As `then`, or the name of a branch. @param {string} path */
const branchOf = (path) => path.split("/").at(-2) ?? "";

/** Whether a job was started by a step for an item of the list at a path. @param {any} job @param {string} path */
export const isOfItems = ({ parentStep }, path) => parentStep?.path.startsWith(`${path}/do[`) === true;

/** As `item 17`, or `item 17, item 2` of a list within a list. @param {string} path */
export const itemOf = (path) => [...path.matchAll(/do\[(\d+)\]/g)].map(([, index]) => `item ${index}`).join(", ");
