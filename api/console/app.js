import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Agents } from "./agents.js";
import { call, get, SIGNED_OUT } from "./api.js";
import { Approvals } from "./approvals.js";
import { Call, Calls } from "./calls.js";
import { Document, Documents } from "./documents.js";
import { Guards } from "./guards.js";
import { Home } from "./home.js";
import { html } from "./html.js";
import { Keys } from "./keys.js";
import { Operator } from "./operator.js";
import { Playground } from "./playground.js";
import { Batch, File, MessageBatch, Response, WorkflowRun } from "./records.js";
import { addressOf, navigate, usePlace } from "./router.js";
import { AgentRun, CompositeRun, Run, Runs } from "./runs.js";
import { Schedules, Trigger, Webhook } from "./schedules.js";
import { SignIn } from "./session.js";
import { Usage } from "./usage.js";
import { Workflows } from "./workflows.js";

/**
 * Every screen: its name in the navigation, if it stands there, and what it shows, with an id and without.
 * @type {Record<string, { title: string, isListed?: boolean, all?: any, one?: any }>}
 */
const screens = {
  home: { title: "Home", isListed: true, all: Home },
  runs: { title: "Runs", isListed: true, all: Runs, one: Run },
  "agent-runs": { title: "Agent run", one: AgentRun },
  "composite-runs": { title: "Composite run", one: CompositeRun },
  "workflow-runs": { title: "Workflow run", one: WorkflowRun },
  responses: { title: "Response", one: Response },
  batches: { title: "Batch", one: Batch },
  "message-batches": { title: "Batch of messages", one: MessageBatch },
  files: { title: "File", one: File },
  documents: { title: "Documents", isListed: true, all: Documents, one: Document },
  playground: { title: "Playground", isListed: true, all: Playground },
  calls: { title: "Calls", isListed: true, all: Calls, one: Call },
  agents: { title: "Agents", isListed: true, all: Agents, one: Agents },
  workflows: { title: "Workflows", isListed: true, all: Workflows, one: Workflows },
  approvals: { title: "Approvals", isListed: true, all: Approvals, one: Approvals },
  schedules: { title: "Schedules", isListed: true, all: Schedules, one: Schedules },
  triggers: { title: "Trigger", one: Trigger },
  webhooks: { title: "Webhook", one: Webhook },
  usage: { title: "Usage", isListed: true, all: Usage },
  keys: { title: "Keys and limits", isListed: true, all: Keys },
  guards: { title: "Guards", isListed: true, all: Guards },
};

/** Opens the page of an id. */
function Search() {
  const [text, setText] = useState("");
  const [note, setNote] = useState("");
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    const address = addressOf(text);
    setNote(address ? "" : "No id that has a page here.");
    if (!address) return;
    setText("");
    navigate(address);
  };
  /** @param {any} event */
  const change = (event) => setText(event.target.value);
  return html`<form class="search" role="search" onSubmit=${submit}>
    <input aria-label="Open an id (press /)" placeholder="Any id …" value=${text} onInput=${change} accesskey="/" id="search" />
    ${note ? html`<p class="problem" role="alert">${note}</p>` : null}</form>`;
}

/** @param {{ me: any, place: any, onSignOut: () => void }} props */
function Header({ me, place, onSignOut }) {
  const links = Object.entries(screens).filter(([, { isListed }]) => isListed);
  return html`<header>
    <p class="product"><a href="/">Switchyard</a></p>
    <nav aria-label="Screens">${links.map(
      ([name, { title }]) =>
        html`<a href=${name === "home" ? "/" : `/console/${name}`} aria-current=${place.screen === name ? "page" : undefined}>${title}</a>`,
    )}</nav>
    <${Search} />
    <p class="meta who"><b>${me.tenantName}</b> ${me.subject} (${me.role}) <button type="button" onClick=${onSignOut}>Sign out</button></p>
  </header>`;
}

/** @param {{ me: any, place: any }} props */
function Screen({ me, place }) {
  const screen = screens[place.screen];
  const Shown = place.id ? screen?.one : screen?.all;
  useEffect(() => {
    document.title = `${screen?.title ?? "Nothing here"}: Switchyard`;
  }, [screen]);
  if (!Shown) return html`<main><h1>Nothing here</h1><p><a href="/">Home</a></p></main>`;
  return html`<main><${Shown} key=${place.screen + place.id} id=${place.id} query=${place.query} me=${me} /></main>`;
}

/** `/` moves to the search, as on many pages. @param {KeyboardEvent} event */
function onKey(event) {
  const isTyping = event.target instanceof Element && event.target.matches("input, textarea, select");
  if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  document.getElementById("search")?.focus();
}

function App() {
  const [me, setMe] = useState(/** @type {any} */ (undefined));
  const place = usePlace();
  useEffect(() => {
    const end = () => setMe(null);
    window.addEventListener(SIGNED_OUT, end);
    document.addEventListener("keydown", onKey);
    get("/me").then(setMe, end);
    return () => {
      window.removeEventListener(SIGNED_OUT, end);
      document.removeEventListener("keydown", onKey);
    };
  }, []);
  if (place.screen === "operator")
    return html`<header><p class="product"><a href="/">Switchyard</a></p></header><main><${Operator} /></main>`;
  if (me === undefined) return html`<main><p class="busy-note" role="status">Loading …</p></main>`;
  if (me === null) return html`<header><p class="product">Switchyard</p></header><${SignIn} onSignedIn=${setMe} />`;
  const signOut = () => call("DELETE", "/session").finally(() => setMe(null));
  return html`<${Header} me=${me} place=${place} onSignOut=${signOut} /><${Screen} me=${me} place=${place} />`;
}

const root = document.getElementById("app");
if (root) render(html`<${App} />`, root);
