import { useRef, useState } from "preact/hooks";
import { html } from "./html.js";
import { Markdown } from "./markdown.js";
import { ask } from "./playground-request.js";
import { duration, Field, IdLink, money } from "./ui.js";

/** Asks a draft's model by the draft's prompt: nothing is saved, and no tool is called. @param {{ draft: any }} props */
export function AgentTrial({ draft }) {
  const [question, setQuestion] = useState("");
  const [answer, setAnswer] = useState(/** @type {any} */ (undefined));
  const running = useRef(/** @type {AbortController | undefined} */ (undefined));
  /** @param {Event} event */
  const submit = async (event) => {
    event.preventDefault();
    running.current?.abort();
    const controller = new AbortController();
    running.current = controller;
    setAnswer({ content: "" });
    const { model, systemPrompt, temperature, maxTokens } = draft;
    const messages = [
      { role: "system", content: systemPrompt },
      { role: "user", content: question },
    ];
    const body = {
      model,
      messages,
      ...(temperature === undefined ? {} : { temperature }),
      ...(maxTokens === undefined ? {} : { maxTokens }),
    };
    try {
      await ask({ path: "/ai/chat", body }, controller.signal, (change) =>
        setAnswer((/** @type {any} */ before) => ({ ...before, ...change })),
      );
    } catch (error) {
      setAnswer((/** @type {any} */ before) => ({ ...before, error: /** @type {Error} */ (error).message }));
    }
  };
  return html`<details><summary>Try the draft, without its tools</summary><form onSubmit=${submit}><${Field} label="Ask the draft" rows="2" value=${question} onInput=${setQuestion} required /><button type="submit">Try it</button></form>
    ${answer && html`<div aria-live="polite"><${Markdown} text=${answer.content || "…"} />${answer.error ? html`<p class="problem" role="alert">${answer.error}</p>` : null}${answer.end ? html`<p class="meta">${answer.end.model}, ${money(answer.end.costUsd)}, ${duration(answer.ms)} <${IdLink} id=${answer.end.logId} text="model call" /></p>` : null}</div>`}</details>`;
}
