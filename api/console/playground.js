import { useRef, useState } from "preact/hooks";
import { call, post, readEvents } from "./api.js";
import { html } from "./html.js";
import { useLoad } from "./load.js";
import { Markdown } from "./markdown.js";
import { Choice, duration, Facts, Field, IdLink, money, number, Problem } from "./ui.js";

/** Passages that are given to the model. */
const PASSAGES = 5;

/**
 * @typedef {{ model: string, system: string, prompt: string, temperature: string, maxTokens: string, hasPassages: boolean }} Settings
 * @typedef {{ text: string, end?: any, passages?: any[] }} Answer
 */

/** @param {Settings} settings @param {any[]} passages */
function toBody({ model, system, prompt, temperature, maxTokens }, passages) {
  const quoted = passages.map(({ title, content }, at) => `[${at + 1}] ${title}\n${content}`).join("\n\n");
  const rule =
    quoted === "" ? "" : `Answer from these passages, and name the numbers of those that you used:\n\n${quoted}`;
  const instructions = [system, rule].filter((part) => part !== "").join("\n\n");
  return {
    ...(model === "" ? {} : { model }),
    ...(temperature === "" ? {} : { temperature: Number(temperature) }),
    ...(maxTokens === "" ? {} : { maxTokens: Number(maxTokens) }),
    messages: [
      ...(instructions === "" ? [] : [{ role: "system", content: instructions }]),
      { role: "user", content: prompt },
    ],
  };
}

/** The same call for a shell, with the key in a variable. @param {object} body */
function toCurl(body) {
  const json = JSON.stringify(body, null, 2).replaceAll("'", "'\\''");
  return `curl -s ${location.origin}/ai/chat -H "authorization: Bearer $KEY" --json '${json}'`;
}

/** @param {{ answer: Answer }} props */
function Shown({ answer }) {
  const { text, end, passages = [] } = answer;
  return html`<section aria-live="polite"><h2>Answer</h2><${Markdown} text=${text || "…"} />
    ${
      end &&
      html`<${Facts} facts=${[
        ["Model", end.model],
        ["Cost", money(end.costUsd)],
        ["Tokens in, out", `${number(end.inputTokens)}, ${number(end.outputTokens)}`],
        ["Took", duration(end._preprocessing?.timingsMs?.total)],
        ["From the cache", end.cached ? "yes" : undefined],
        ["Ended by", end.finishReason],
        ["Call", html`<${IdLink} id=${end.logId} />`],
      ]} />${end._preprocessing ? html`<details><summary>What preprocessing did</summary><pre tabindex="0">${JSON.stringify(end._preprocessing, null, 2)}</pre></details>` : null}`
    }
    ${passages.length === 0 ? null : html`<h3>Passages</h3><ol class="passages">${passages.map((one) => html`<li><${IdLink} id=${one.documentId} text=${one.title} /> <span class="meta">score ${one.score.toFixed(3)}</span><p class="thought">${one.content}</p></li>`)}</ol>`}</section>`;
}

/** Sends the prompt, and shows the answer as it comes. @param {Settings} settings */
function useAnswer(settings) {
  const [answer, setAnswer] = useState(/** @type {Answer | undefined} */ (undefined));
  const [error, setError] = useState(/** @type {Error | undefined} */ (undefined));
  const [body, setBody] = useState(/** @type {object | undefined} */ (undefined));
  const running = useRef(/** @type {AbortController | undefined} */ (undefined));
  const [isBusy, setIsBusy] = useState(false);
  const ask = async () => {
    const controller = new AbortController();
    running.current = controller;
    setIsBusy(true);
    setError(undefined);
    setAnswer({ text: "" });
    try {
      const found = settings.hasPassages
        ? (await post("/rag/query", { query: settings.prompt, topK: PASSAGES })).results
        : [];
      const asked = toBody(settings, found);
      setBody(asked);
      const headers = { "x-svc-debug": "true", "x-svc-surface": "playground" };
      const response = await call("POST", "/ai/chat", {
        body: { ...asked, stream: true },
        headers,
        signal: controller.signal,
      });
      let text = "";
      for await (const event of readEvents(response)) {
        if (event.error) throw new Error(event.error.message);
        text += event.delta?.content ?? "";
        setAnswer({ text, passages: found, ...(event.done ? { end: event } : {}) });
      }
    } catch (failure) {
      if (!controller.signal.aborted) setError(/** @type {Error} */ (failure));
    }
    setIsBusy(false);
  };
  return { answer, error, body, isBusy, ask, stop: () => running.current?.abort() };
}

/** Asks any model that is available. */
export function Playground() {
  const models = useLoad("/ai/models?available=true");
  const [settings, setSettings] = useState(
    /** @type {Settings} */ ({ model: "", system: "", prompt: "", temperature: "", maxTokens: "", hasPassages: false }),
  );
  const { answer, error, body, isBusy, ask, stop } = useAnswer(settings);
  /** @param {keyof Settings} name */
  const set = (name) => (/** @type {any} */ value) => setSettings((before) => ({ ...before, [name]: value }));
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    ask();
  };
  const chatModels = (models.value?.models ?? []).filter((/** @type {any} */ { type }) => type !== "embedding");
  return html`<h1>Playground</h1><${Problem} error=${models.error} /><form onSubmit=${submit}>
      <${Choice} label="Model" value=${settings.model} options=${chatModels.map((/** @type {any} */ { id }) => id)} all="auto" onChange=${set("model")} />
      <${Field} label="Temperature" type="number" min="0" max="2" step="0.1" value=${settings.temperature} onInput=${set("temperature")} />
      <${Field} label="Most tokens" type="number" min="1" value=${settings.maxTokens} onInput=${set("maxTokens")} />
      <${Field} label="System prompt" rows="2" value=${settings.system} onInput=${set("system")} />
      <${Field} label="Prompt" rows="4" value=${settings.prompt} onInput=${set("prompt")} required />
      <label><input type="checkbox" checked=${settings.hasPassages} onChange=${(/** @type {any} */ event) => set("hasPassages")(event.target.checked)} /> Answer from passages of the documents</label>
      <button type="submit" disabled=${isBusy}>Ask</button>
      <button type="button" disabled=${!isBusy} onClick=${stop}>Stop</button>
    </form><${Problem} error=${error} />
    ${answer && !error ? html`<${Shown} answer=${answer} />` : null}
    ${body ? html`<details><summary>As curl</summary><pre tabindex="0">${toCurl(body)}</pre></details>` : null}`;
}
