import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Agents } from "./agents.js";
import { call, get, SIGNED_OUT } from "./api.js";
import { Approvals } from "./approvals.js";
import { Call, Calls } from "./calls.js";
import { Connection, RECOVERED, recover } from "./connection.js";
import { Document, Documents } from "./documents.js";
import { forgetDrafts } from "./drafts.js";
import { Feedback } from "./feedback.js";
import { Guards } from "./guards.js";
import { Home } from "./home.js";
import { html } from "./html.js";
import { Keys } from "./keys.js";
import { Operator } from "./operator.js";
import { Playground } from "./playground.js";
import { Batch, File, MessageBatch, Response, WorkflowRun } from "./records.js";
import { addressOf, forgetPlaces, navigate, usePlace } from "./router.js";
import { AgentRun, CompositeRun, Run, Runs } from "./runs.js";
import { Schedules, Trigger, Webhook } from "./schedules.js";
import { SignIn, SignInAgain } from "./session.js";
import { Shortcuts } from "./shortcuts.js";
import { Usage } from "./usage.js";
import { Workflows } from "./workflows.js";

/**
 * Every screen: its name in the navigation, if it stands there, else of which of these it is a part, and what it shows, with an id
 * and without.
 * @type {Record<string, { title: string, isListed?: boolean, of?: string, all?: any, one?: any }>}
 */
const screens = {
  home: { title: "Home", isListed: true, all: Home },
  runs: { title: "Runs", isListed: true, all: Runs, one: Run },
  "agent-runs": { title: "Agent run", of: "runs", one: AgentRun },
  "composite-runs": { title: "Composite run", of: "runs", one: CompositeRun },
  "workflow-runs": { title: "Workflow run", of: "runs", one: WorkflowRun },
  responses: { title: "Response", of: "runs", one: Response },
  batches: { title: "Batch", of: "runs", one: Batch },
  "message-batches": { title: "Batch of messages", of: "runs", one: MessageBatch },
  files: { title: "File", one: File },
  documents: { title: "Documents", isListed: true, all: Documents, one: Document },
  feedback: { title: "Feedback", of: "documents", all: Feedback },
  playground: { title: "Playground", isListed: true, all: Playground },
  calls: { title: "Calls", isListed: true, all: Calls, one: Call },
  agents: { title: "Agents", isListed: true, all: Agents, one: Agents },
  workflows: { title: "Workflows", isListed: true, all: Workflows, one: Workflows },
  approvals: { title: "Approvals", isListed: true, all: Approvals, one: Approvals },
  schedules: { title: "Schedules", isListed: true, all: Schedules, one: Schedules },
  triggers: { title: "Trigger", of: "schedules", one: Trigger },
  webhooks: { title: "Webhook", of: "schedules", one: Webhook },
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

/** Brings the present place into view where the navigation is wider than the screen; the page itself stays. @param {HTMLElement | null} nav */
function centre(nav) {
  const link = /** @type {HTMLElement | null} */ (nav?.querySelector("[aria-current]"));
  if (nav && link) nav.scrollLeft = link.offsetLeft - (nav.clientWidth - link.offsetWidth) / 2;
}

/** @param {{ me: any, place: any, onSignOut: () => void }} props */
function Header({ me, place, onSignOut }) {
  const links = Object.entries(screens).filter(([, { isListed }]) => isListed);
  const present = screens[place.screen]?.of ?? place.screen;
  const nav = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => centre(nav.current), [place]);
  return html`<header>
    <p class="product"><a href="/">Switchyard</a></p>
    <nav aria-label="Screens" ref=${nav}>${links.map(
      ([name, { title }]) =>
        html`<a href=${name === "home" ? "/" : `/console/${name}`} aria-current=${present === name ? "page" : undefined}>${title}</a>`,
    )}</nav>
    <${Search} />
    <p class="meta who"><b>${me.tenantName}</b> ${me.subject} (${me.role}) <button type="button" onClick=${onSignOut}>Sign out</button></p>
  </header>`;
}

/** The title of the page: that of the screen, or the page's own heading. @param {string} title */
function useTitle(title) {
  useEffect(() => {
    const note = () => {
      const words = [...(document.querySelector("main h1")?.childNodes ?? [])].filter(
        ({ nodeType }) => nodeType === Node.TEXT_NODE,
      );
      const heading = words
        .map(({ textContent }) => textContent)
        .join("")
        .trim();
      const whole = heading === "" || heading === title ? title : `${heading} – ${title}`;
      document.title = `${whole}: Switchyard`;
    };
    note();
    const observer = new MutationObserver(note);
    observer.observe(document.body, { childList: true, subtree: true, characterData: true });
    return () => observer.disconnect();
  }, [title]);
}

/** @param {{ me: any, place: any }} props */
function Screen({ me, place }) {
  const screen = screens[place.screen];
  const Shown = place.id ? screen?.one : screen?.all;
  useTitle(screen?.title ?? "Nothing here");
  if (!Shown) return html`<main><h1>Nothing here</h1><p><a href="/">Home</a></p></main>`;
  return html`<main><${Shown} key=${place.screen + place.id} id=${place.id} query=${place.query} me=${me} /></main>`;
}

/** Who is signed in; null: nobody; undefined: not known yet. And why they must sign in again. */
function useSession() {
  const [me, setMe] = useState(/** @type {any} */ (undefined));
  const [reason, setReason] = useState("");
  useEffect(() => {
    /** @param {any} error */
    const settle = (error) => {
      if (error.status === 401) setMe((/** @type {any} */ before) => before ?? null);
    };
    const ask = () => get("/me").then(setMe, settle);
    /** @param {any} event */
    const end = ({ detail }) => setReason(detail ?? "The session has ended.");
    window.addEventListener(SIGNED_OUT, end);
    window.addEventListener(RECOVERED, ask);
    ask();
    return () => {
      window.removeEventListener(SIGNED_OUT, end);
      window.removeEventListener(RECOVERED, ask);
    };
  }, []);
  /** @param {any} signedIn */
  const signIn = (signedIn) => {
    const isOther =
      me && (me.tenantId !== signedIn.tenantId || me.subject !== signedIn.subject || me.role !== signedIn.role);
    if (isOther) forgetDrafts();
    setMe(signedIn);
    setReason("");
    if (isOther) location.reload();
    else recover();
  };
  const signOut = () =>
    call("DELETE", "/session").finally(() => {
      forgetDrafts();
      forgetPlaces();
      setMe(null);
    });
  return { me, reason, signIn, signOut };
}

function App() {
  const { me, reason, signIn, signOut } = useSession();
  const place = usePlace();
  if (place.screen === "operator")
    return html`<header><p class="product"><a href="/">Switchyard</a></p></header><${Connection} /><main><${Operator} /></main>`;
  if (me === undefined) return html`<${Connection} /><main><p class="busy-note" role="status">Loading …</p></main>`;
  if (me === null)
    return html`<header><p class="product">Switchyard</p></header><${Connection} /><${SignIn} onSignedIn=${signIn} />`;
  return html`<${Header} me=${me} place=${place} onSignOut=${signOut} /><${Connection} /><${Screen} me=${me} place=${place} />
    <${Shortcuts} />${reason === "" ? null : html`<${SignInAgain} reason=${reason} onSignedIn=${signIn} />`}`;
}

const root = document.getElementById("app");
if (root) render(html`<${App} />`, root);
