/** The reference's filter, and links to operations, which open what they lead to. */
const field = document.querySelector("#filter");
const note = document.querySelector("#filter-note");
const operations = [...document.querySelectorAll("details.operation")].map((node) => ({
  node,
  text: node.querySelector("summary").textContent.toLowerCase(),
  heading: node.closest("section"),
}));

const filter = () => {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = new Set();
  let count = 0;
  for (const { node, text, heading } of operations) {
    node.hidden = !words.every((word) => text.includes(word));
    if (node.hidden) continue;
    shown.add(heading);
    count += 1;
  }
  for (const { heading } of operations) heading.hidden = !shown.has(heading);
  note.textContent = words.length === 0 ? "" : `${count} of ${operations.length} operations`;
};

/** The id that the address names; one that is encoded wrongly is taken as it is. */
const targetId = () => {
  const hash = location.hash.slice(1);
  try {
    return decodeURIComponent(hash);
  } catch {
    return hash;
  }
};

const openTarget = () => {
  const target = document.getElementById(targetId());
  if (!target) return;
  if (target.closest("[hidden]")) {
    field.value = "";
    filter();
  }
  if (target instanceof HTMLDetailsElement) target.open = true;
  target.scrollIntoView();
};

field.addEventListener("input", filter);
window.addEventListener("hashchange", openTarget);
filter();
openTarget();
