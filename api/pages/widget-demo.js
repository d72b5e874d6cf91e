/** Shows the widget: takes a widget key, keeps it in this tab, and loads the script as any page would. */
const form = document.querySelector("form");
const input = document.querySelector("input");
const note = document.querySelector("#note");
const storageKey = "switchyard-widget-key";

const load = (key) => {
  const script = document.createElement("script");
  script.src = "/widget.js";
  script.dataset.key = key;
  script.dataset.title = "Ask Switchyard";
  script.addEventListener("load", () => {
    note.textContent = "The bubble is in the corner of this page. Reload the page to use another key.";
    form.hidden = true;
  });
  script.addEventListener("error", () => {
    note.textContent = "The script could not be loaded.";
  });
  document.body.append(script);
};

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const key = input.value.trim();
  if (!/^pk_[0-9A-Za-z]{32}$/.test(key)) {
    note.textContent = "A widget key begins with pk_ and has 32 letters or digits after it.";
    return;
  }
  sessionStorage.setItem(storageKey, key);
  load(key);
});

const storedKey = sessionStorage.getItem(storageKey);
if (storedKey) load(storedKey);
