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
  const { key, title = "Chat", greeting = "Hello! What would you like to know?", model } = script.dataset;
  const endpoint = new URL("/ai/chat", script.src).href;
  const rendererUrl = new URL("/widget/files/safe-markdown.js", script.src).href;
  /** Most turns that are sent with a message; older ones are left out. */
  const MAX_TURNS = 20;
  /** Most bytes of these turns; a widget key's request may have 64 KiB. */
  const MAX_BYTES = 60_000;

  const styles = `
:host{all:initial;font:15px/1.45 system-ui,sans-serif;color-scheme:light dark}
button{font:inherit;cursor:pointer}
button:focus-visible,textarea:focus-visible{outline:3px solid #2563eb;outline-offset:2px}
.bubble{position:fixed;right:1.25rem;bottom:1.25rem;width:3.5rem;height:3.5rem;border:0;border-radius:50%;background:#2563eb;color:#fff;font-size:1.5rem;box-shadow:0 4px 16px #0005;z-index:2147483000}
.panel{position:fixed;right:1.25rem;bottom:5.5rem;width:min(24rem,calc(100vw - 2.5rem));height:min(32rem,calc(100vh - 7rem));display:flex;flex-direction:column;background:Canvas;color:CanvasText;border:1px solid #8886;border-radius:12px;box-shadow:0 8px 32px #0005;overflow:hidden;z-index:2147483000}
.panel[hidden]{display:none}
header{display:flex;justify-content:space-between;align-items:center;padding:.6rem .9rem;border-bottom:1px solid #8884;font-weight:600}
header button{border:0;background:none;color:inherit;font-size:1.1rem;padding:.2rem .5rem}
ol{flex:1;margin:0;padding:.9rem;overflow-y:auto;list-style:none;display:flex;flex-direction:column;gap:.6rem}
li{max-width:85%;padding:.5rem .75rem;border-radius:10px;white-space:pre-wrap;overflow-wrap:anywhere;background:#8882}
li.user{align-self:flex-end;background:#2563eb;color:#fff}
li.error{background:#dc262622;border:1px solid #dc262688}
li.rendered{white-space:normal}
li.rendered>*{margin:.4rem 0}
li.rendered>:first-child{margin-top:0}
li.rendered>:last-child{margin-bottom:0}
li.rendered pre,li.rendered table{display:block;overflow-x:auto}
li.rendered a{color:LinkText}
li.rendered td,li.rendered th{padding:.1rem .4rem;text-align:left}
li button{margin-left:.5rem}
form{display:flex;gap:.5rem;padding:.7rem;border-top:1px solid #8884}
textarea{flex:1;resize:none;font:inherit;padding:.45rem .6rem;border:1px solid #8888;border-radius:8px;background:Field;color:FieldText}
form button{border:0;border-radius:8px;padding:0 .9rem;background:#2563eb;color:#fff}
form button:disabled{opacity:.5;cursor:default}
.sr{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}`;

  const element = (name, properties = {}, ...children) => {
    const node = Object.assign(document.createElement(name), properties);
    node.append(...children);
    return node;
  };

  const host = element("div");
  const root = host.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(styles);
  root.adoptedStyleSheets = [sheet];

  const list = element("ol", { role: "log", ariaLive: "polite", ariaLabel: "Conversation" });
  const label = element("label", { className: "sr", htmlFor: "text", textContent: "Your message" });
  const text = element("textarea", { id: "text", rows: 2, placeholder: "Write a message…", maxLength: 4000 });
  const send = element("button", { type: "submit", textContent: "Send" });
  const form = element("form", {}, label, text, send);
  const close = element("button", { type: "button", textContent: "✕", ariaLabel: "Close the chat" });
  const panel = element(
    "section",
    { className: "panel", hidden: true, role: "dialog", ariaLabel: title },
    element("header", {}, element("span", { textContent: title }), close),
    list,
    form,
  );
  const bubble = element("button", {
    className: "bubble",
    type: "button",
    ariaLabel: `Open the chat: ${title}`,
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

  const turns = [];
  let running;

  let showMarkdown;
  let isLoading = false;
  const loadRenderer = () => {
    if (isLoading) return;
    isLoading = true;
    import(rendererUrl).then(
      (module) => {
        showMarkdown = module.showMarkdown;
      },
      () => undefined, // the page's policy forbids it, or the network: answers stay plain text
    );
  };
  const scrollDown = () => {
    list.scrollTop = list.scrollHeight;
  };
  /** Shows an answer so far, as Markdown once its renderer is there. */
  const fill = (item, content) => {
    item.classList.toggle("rendered", showMarkdown !== undefined);
    if (showMarkdown) {
      showMarkdown(item, content, scrollDown);
      return;
    }
    item.textContent = content;
    scrollDown();
  };

  const show = (className, content) => {
    const item = element("li", { className, textContent: content });
    list.append(item);
    scrollDown();
    return item;
  };
  const toggle = (isOpen) => {
    panel.hidden = !isOpen;
    bubble.ariaExpanded = String(isOpen);
    if (isOpen) {
      loadRenderer();
      if (list.childElementCount === 0) show("assistant", greeting);
      text.focus();
    } else {
      running?.abort(); // the user is not reading: stop the response
      bubble.focus();
    }
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

  const explain = (status) => {
    if (status === 429) return "Too many messages just now. Please wait a moment.";
    if (status === 401 || status === 403) return "This chat is not available here.";
    return "That did not work. Please try again.";
  };

  /** The newest turns that fit into one request. */
  const newestTurns = () => {
    const encoder = new TextEncoder();
    const newest = [];
    let bytes = 0;
    for (const turn of turns.slice(-MAX_TURNS).reverse()) {
      bytes += encoder.encode(JSON.stringify(turn)).length + 1;
      if (bytes > MAX_BYTES) break;
      newest.unshift(turn);
    }
    return newest;
  };

  const answer = async () => {
    running?.abort();
    const controller = new AbortController();
    running = controller;
    send.disabled = true;
    const item = show("assistant", "…");
    let received = "";
    try {
      const response = await fetch(endpoint, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ messages: newestTurns(), stream: true, ...(model ? { model } : {}) }),
        signal: controller.signal,
      });
      if (!response.ok || !response.body) throw new Error(explain(response.status));
      let isWhole = false;
      for await (const event of readEvents(response.body)) {
        if (event.error) throw new Error(explain(502));
        received += event.delta?.content ?? "";
        fill(item, received || "…");
        isWhole ||= event.done === true;
      }
      if (!isWhole) throw new Error(explain(502));
      turns.push({ role: "assistant", content: received });
    } catch (error) {
      if (controller.signal.aborted) {
        fill(item, received || "(stopped)");
        return;
      }
      item.remove(); // the next frame may still show in it what has come
      const problem = show("error", error instanceof TypeError ? explain(0) : error.message);
      const retry = element("button", { type: "button", textContent: "Try again" });
      retry.addEventListener("click", () => {
        problem.remove();
        answer();
      });
      problem.append(retry);
      scrollDown();
    } finally {
      if (running === controller) send.disabled = false;
    }
  };

  const submit = () => {
    const content = text.value.trim();
    if (content === "" || send.disabled) return;
    text.value = "";
    turns.push({ role: "user", content });
    show("user", content);
    answer();
  };

  bubble.addEventListener("click", () => toggle(panel.hidden));
  close.addEventListener("click", () => toggle(false));
  panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape") toggle(false);
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

  const start = () => document.body.append(host);
  if (document.body) start();
  else document.addEventListener("DOMContentLoaded", start, { once: true });
})();
