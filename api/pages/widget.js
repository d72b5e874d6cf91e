/**
 * The chat bubble: one script. The renderer of Markdown is loaded from the same place when the chat is first opened; where
 * it cannot be, answers are shown as they were written.
 *
 *   <script src="https://switchyard.example/widget.js" data-key="pk_..." data-title="Ask us" async></script>
 *
 * It lives in a shadow root, so that no styles leak in or out, and needs no inline style or script, so that a page's
 * content security policy has to allow only this file (`script-src`) and its origin (`connect-src`).
 */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: one closure leaves the page's globals alone
(() => {
  const script = document.currentScript;
  if (!(script instanceof HTMLScriptElement)) return;
  const { key, model, color, onColor, side, theme, lang = document.documentElement.lang } = script.dataset;
  /** What only the page's author can mend. */
  // biome-ignore lint/suspicious/noConsole: visitors have no use for it
  const tell = (why) => console.error(`Switchyard's chat widget: ${why}`);
  if (!key) return tell("data-key is missing. Make a key by POST /ai/widget/key.");
  const endpoint = new URL("/ai/chat", script.src).href;
  const rendererUrl = new URL("/widget/files/safe-markdown.js", script.src).href;
  /** Most turns that are sent with a message; older ones are left out. */
  const MAX_TURNS = 20;
  /** Most bytes of these turns; a widget key's request may have 64 KiB. */
  const MAX_BYTES = 60_000;

  const names =
    "title greeting label placeholder send open close fresh retry sources page stopped busy refused used failed none".split(
      " ",
    );
  const translations = {
    en: "Chat|Hello! What would you like to know?|Your message|Write a message…|Send|Open the chat|Close the chat|New conversation|Try again|Sources|page|(stopped)|Too many messages just now. Please wait a moment.|This chat is not available here.|This chat has reached its limit for now.|That did not work. Please try again.|I found nothing about this in the documents.",
    de: "Chat|Hallo! Was möchten Sie wissen?|Ihre Nachricht|Nachricht schreiben…|Senden|Chat öffnen|Chat schließen|Neues Gespräch|Noch einmal|Quellen|Seite|(angehalten)|Gerade kommen zu viele Nachrichten. Bitte warten Sie einen Moment.|Dieser Chat ist hier nicht verfügbar.|Dieser Chat hat sein Limit vorerst erreicht.|Das hat nicht geklappt. Bitte versuchen Sie es noch einmal.|Dazu habe ich in den Dokumenten nichts gefunden.",
    fr: "Chat|Bonjour ! Que souhaitez-vous savoir ?|Votre message|Écrire un message…|Envoyer|Ouvrir le chat|Fermer le chat|Nouvelle conversation|Réessayer|Sources|page|(arrêté)|Trop de messages en ce moment. Patientez un instant.|Ce chat n’est pas disponible ici.|Ce chat a atteint sa limite pour le moment.|Cela n’a pas fonctionné. Veuillez réessayer.|Je n’ai rien trouvé à ce sujet dans les documents.",
    es: "Chat|¡Hola! ¿Qué desea saber?|Su mensaje|Escriba un mensaje…|Enviar|Abrir el chat|Cerrar el chat|Nueva conversación|Reintentar|Fuentes|página|(detenido)|Hay demasiados mensajes ahora. Espere un momento.|Este chat no está disponible aquí.|Este chat ha alcanzado su límite por ahora.|No ha funcionado. Inténtelo de nuevo.|No he encontrado nada al respecto en los documentos.",
  };
  const language = lang.slice(0, 2).toLowerCase() in translations ? lang.slice(0, 2).toLowerCase() : "en";
  const translated = translations[language].split("|");
  const words = Object.fromEntries(names.map((name, at) => [name, script.dataset[name] ?? translated[at]]));

  /** A colour of the page's author, unless it is none. */
  const colour = (given, otherwise) => (given && CSS.supports("color", given) ? given : otherwise);
  const edge = side === "left" ? "left" : "right";
  const styles = `
:host{all:initial;font:15px/1.45 system-ui,sans-serif;color-scheme:${theme === "light" || theme === "dark" ? theme : "light dark"};--accent:${colour(color, "#2563eb")};--on-accent:${colour(onColor, "#fff")}}
button{font:inherit;cursor:pointer}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
.bubble{position:fixed;${edge}:1.25rem;bottom:1.25rem;width:3.5rem;height:3.5rem;border:0;border-radius:50%;background:var(--accent);color:var(--on-accent);font-size:1.5rem;box-shadow:0 4px 16px #0005;z-index:2147483000}
.bubble svg{vertical-align:middle}
.panel{position:fixed;${edge}:1.25rem;bottom:5.5rem;width:min(24rem,calc(100vw - 2.5rem));height:min(32rem,calc(100vh - 7rem));display:flex;flex-direction:column;background:Canvas;color:CanvasText;border:1px solid #8886;border-radius:12px;box-shadow:0 8px 32px #0005;overflow:hidden;z-index:2147483000}
.panel[hidden]{display:none}
header{display:flex;align-items:center;padding:.6rem .9rem;border-bottom:1px solid #8884;font-weight:600}
header span{flex:1}
header button{border:0;background:none;color:inherit;font-size:1.1rem;padding:.2rem .5rem}
.log{flex:1;padding:.9rem;overflow-y:auto;display:flex;flex-direction:column;gap:.6rem}
.turn{flex:none;box-sizing:border-box;max-width:85%;padding:.5rem .75rem;border-radius:10px;white-space:pre-wrap;overflow-wrap:anywhere;background:#8882;align-self:flex-start}
.user{align-self:flex-end;background:var(--accent);color:var(--on-accent)}
.error{background:#dc262622;border:1px solid #dc262688}
.error button{display:block;margin-top:.4rem}
.rendered{white-space:normal;max-width:100%}
.text>*{margin:.4rem 0}
.text>:first-child{margin-top:0}
.text>:last-child{margin-bottom:0}
.text :is(h1,h2,h3,h4,h5,h6){font-size:1.05em}
.text :is(ul,ol){padding-left:1.4rem}
.text :is(pre,table){display:block;overflow-x:auto;font-size:.9em}
.text pre{padding:.5rem;border-radius:6px;background:#8882;white-space:pre;overflow-wrap:normal}
.text code{font-family:ui-monospace,monospace}
.text table{border-collapse:collapse;overflow-wrap:normal}
.text :is(td,th){padding:.2rem .5rem;border:1px solid #8886;text-align:left}
.text blockquote{padding-left:.6rem;border-left:3px solid #8886}
a{color:LinkText}
.sources{margin-top:.5rem;padding-top:.4rem;border-top:1px solid #8884;font-size:.87em;white-space:normal}
.sources ol{margin:.2rem 0 0;padding-left:1.4rem}
.sources q{display:block;opacity:.85}
form{display:flex;gap:.5rem;padding:.7rem;border-top:1px solid #8884}
textarea{flex:1;min-width:0;resize:none;font:inherit;padding:.45rem .6rem;border:1px solid #8888;border-radius:8px;background:Field;color:FieldText}
textarea::placeholder{color:inherit;opacity:.75}
form button{border:0;border-radius:8px;padding:0 .9rem;background:var(--accent);color:var(--on-accent)}
form button:disabled{opacity:.5;cursor:default}
.sr{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}`;

  const element = (name, properties = {}, ...children) => {
    const node = Object.assign(document.createElement(name), properties);
    node.append(...children);
    return node;
  };

  const host = element("div", { lang: language });
  const root = host.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(styles);
  root.adoptedStyleSheets = [sheet];

  const log = element("div", {
    className: "log",
    role: "log",
    tabIndex: 0,
    ariaLive: "polite",
    ariaLabel: words.title,
  });
  const label = element("label", { className: "sr", htmlFor: "text", textContent: words.label });
  const text = element("textarea", { id: "text", rows: 2, placeholder: words.placeholder, maxLength: 4000 });
  const send = element("button", { type: "submit", textContent: words.send });
  const form = element("form", {}, label, text, send);
  const fresh = element("button", { type: "button", textContent: "↺", ariaLabel: words.fresh, title: words.fresh });
  const close = element("button", { type: "button", textContent: "✕", ariaLabel: words.close, title: words.close });
  const panel = element(
    "section",
    { className: "panel", hidden: true, role: "dialog", ariaLabel: words.title },
    element("header", {}, element("span", { textContent: words.title }), fresh, close),
    log,
    form,
  );
  const bubble = element("button", {
    className: "bubble",
    type: "button",
    ariaLabel: `${words.open}: ${words.title}`,
    ariaExpanded: "false",
  });
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("width", "28");
  svg.setAttribute("fill", "currentColor");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", "M4 3h16a2 2 0 0 1 2 2v10a2 2 0 0 1-2 2h-8l-5 4v-4H4a2 2 0 0 1-2-2V5a2 2 0 0 1 2-2z");
  svg.append(path);
  bubble.append(svg);
  root.append(panel, bubble);

  /** What was said: `role`, `content`, and of answers `sources` and `links`, where they may link to. */
  let turns = [];
  let running;

  const storageName = `switchyard-chat ${key}`;
  /** Keeps the conversation over a reload, in this tab. */
  const save = () => {
    try {
      sessionStorage.setItem(storageName, JSON.stringify({ turns: turns.slice(-MAX_TURNS), isOpen: !panel.hidden }));
    } catch {
      // The page's storage is full or not to be had: the chat works without it.
    }
  };
  const restore = () => {
    try {
      return JSON.parse(sessionStorage.getItem(storageName)) ?? {};
    } catch {
      return {};
    }
  };

  let showMarkdown;
  let loading;
  const loadRenderer = () => {
    loading ??= import(rendererUrl).then(
      (module) => {
        showMarkdown = module.showMarkdown;
      },
      () => undefined, // the page's policy forbids it, or the network: answers stay plain text
    );
    return loading;
  };
  const scrollDown = () => {
    log.scrollTop = log.scrollHeight;
  };
  const show = (className, content) => {
    const item = element("div", { className: `turn ${className}` }, element("div", { className: "text" }, content));
    log.append(item);
    scrollDown();
    return item;
  };
  /** Answers that are shown as they were written, since the renderer is not there yet, and what they say. */
  const plain = new Map();
  /** Shows an answer so far, as Markdown once its renderer is there. */
  const fill = (item, turn) => {
    const { content, links } = turn;
    item.classList.toggle("rendered", showMarkdown !== undefined);
    if (showMarkdown) {
      showMarkdown(item.firstChild, content, scrollDown, links);
      return;
    }
    plain.set(item, turn);
    item.firstChild.textContent = content;
    scrollDown();
  };
  const toSource = ({ title, page, heading, quote, url }) => {
    const name = /^https?:/.test(url ?? "")
      ? element("a", { href: url, target: "_blank", rel: "noopener noreferrer nofollow", textContent: title })
      : title;
    const place = [page && `${words.page} ${page}`, heading].filter(Boolean).map((part) => `, ${part}`);
    return element("li", {}, name, ...place, element("q", { textContent: quote }));
  };
  const showSources = (item, sources) => {
    if (!sources?.length) return;
    const list = element("ol", {}, ...sources.map(toSource));
    item.append(element("div", { className: "sources" }, words.sources, list));
    scrollDown();
  };
  const showProblem = (why) => {
    const problem = show("error", why);
    const retry = element("button", { type: "button", textContent: words.retry });
    retry.addEventListener("click", () => {
      problem.remove();
      answer();
    });
    problem.firstChild.append(retry);
    scrollDown();
  };
  const showAll = () => {
    log.replaceChildren();
    show("assistant", words.greeting);
    for (const turn of turns) {
      const item = show(turn.role, turn.content);
      if (turn.role !== "assistant") continue;
      fill(item, turn);
      showSources(item, turn.sources);
    }
    if (turns.at(-1)?.role === "user") showProblem(words.stopped); // the page was left before the answer came
  };
  const open = async () => {
    panel.hidden = false;
    bubble.ariaExpanded = "true";
    save();
    if (log.childElementCount === 0) showAll();
    await loadRenderer();
    for (const [item, turn] of plain) fill(item, turn);
    plain.clear();
  };
  const leave = () => {
    panel.hidden = true;
    bubble.ariaExpanded = "false";
    running?.abort(); // the user is not reading: stop the response
    save();
    bubble.focus();
  };

  /** The data of each event of a stream, as it comes. */
  async function* readEvents(body) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let buffered = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      buffered += value;
      const events = buffered.split("\n\n");
      buffered = events.pop();
      for (const event of events) {
        const data = event
          .split("\n")
          .filter((line) => line.startsWith("data:"))
          .map((line) => line.slice(5).trim())
          .join("\n");
        if (data !== "") yield JSON.parse(data);
      }
    }
  }

  /** What a refusal means: to the visitor, and to the page's author. */
  const explain = async (response) => {
    const { status } = response;
    if (status === 401 || status === 403) {
      const refusal = await response.json().catch(() => ({}));
      tell(
        `${refusal.error?.message ?? "the key was refused."} (${status}; this page's origin is ${location.origin}, and the pages that may use a key are its allowedOrigins)`,
      );
      return words.refused;
    }
    if (status === 402) return words.used;
    return status === 429 ? words.busy : words.failed;
  };

  /** The newest turns that fit into one request. */
  const newestTurns = () => {
    const encoder = new TextEncoder();
    const newest = [];
    let bytes = 0;
    for (const { role, content } of turns.slice(-MAX_TURNS).reverse()) {
      bytes += encoder.encode(JSON.stringify({ role, content })).length + 1;
      if (bytes > MAX_BYTES) break;
      newest.unshift({ role, content });
    }
    return newest;
  };

  class Refused extends Error {}

  const answer = async () => {
    running?.abort();
    const controller = new AbortController();
    running = controller;
    send.disabled = true;
    const item = show("assistant", "…");
    const turn = { role: "assistant", content: "" };
    try {
      const response = await fetch(endpoint, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ messages: newestTurns(), stream: true, ...(model ? { model } : {}) }),
        signal: controller.signal,
      });
      if (!response.ok || !response.body) throw new Refused(await explain(response));
      let isWhole = false;
      for await (const event of readEvents(response.body)) {
        if (event.error) throw new Refused(event.error.code === "budget_exhausted" ? words.used : words.failed);
        turn.links ??= event.linkOrigins;
        turn.content += event.delta?.content ?? "";
        if (event.nothingFound) turn.content = words.none;
        if (event.citations) turn.sources = event.citations;
        fill(item, { ...turn, content: turn.content || "…" });
        isWhole ||= event.done === true;
      }
      if (!isWhole || turn.content === "") throw new Refused(words.failed);
      showSources(item, turn.sources);
      turns.push(turn);
      save();
    } catch (error) {
      if (controller.signal.aborted) {
        fill(item, { ...turn, content: turn.content || words.stopped });
        return;
      }
      item.remove(); // the next frame may still show in it what has come
      showProblem(error instanceof Refused ? error.message : words.failed);
    } finally {
      if (running === controller) send.disabled = false;
    }
  };

  const submit = () => {
    const content = text.value.trim();
    if (content === "" || send.disabled) return;
    text.value = "";
    turns.push({ role: "user", content });
    save();
    show("user", content);
    answer();
  };

  bubble.addEventListener("click", () => {
    if (!panel.hidden) return leave();
    open();
    text.focus();
  });
  close.addEventListener("click", leave);
  fresh.addEventListener("click", () => {
    running?.abort();
    turns = [];
    save();
    showAll();
    text.focus();
  });
  panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape") leave();
  });
  text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    submit();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });

  const start = () => {
    document.body.append(host);
    const kept = restore();
    if (Array.isArray(kept.turns)) turns = kept.turns;
    if (kept.isOpen) open();
  };
  if (document.body) start();
  else document.addEventListener("DOMContentLoaded", start, { once: true });
})();
