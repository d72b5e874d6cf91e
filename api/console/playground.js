import { useEffect, useRef, useState } from "preact/hooks";
import { Citations, PassageLink } from "./citations.js";
import { Rate } from "./feedback.js";
import { html } from "./html.js";
import { useList } from "./load.js";
import { Markdown } from "./markdown.js";
import { ModelChoice, useChoices } from "./playground-models.js";
import { ask, findPassages, toPrograms, toRequest } from "./playground-request.js";
import { Choice, Code, duration, Facts, Field, IdLink, money, number, Problem } from "./ui.js";

const MAX_COLUMNS = 4;
const MAX_FILE_BYTES = 8 << 20;
/** Conversations that are kept, until the tab is closed. */
const MAX_KEPT = 20;

/**
 * @typedef {import("./playground-request.js").Turn} Turn
 * @typedef {import("./playground-request.js").Settings} Settings
 * @typedef {{ model: string, turns: Turn[] }} Column
 * @typedef {{ at: string, settings: Settings, columns: Column[] }} Kept
 */

const noSettings = /** @type {Settings} */ ({
  system: "",
  temperature: "",
  maxTokens: "",
  topP: "",
  seed: "",
  further: "",
  documents: "",
});

/** Conversations of this tab, by the key of their reader. @param {string} owner */
function useHistory(owner) {
  const name = `switchyard-playground-${owner}`;
  const [kept, setKept] = useState(() => /** @type {Kept[]} */ (JSON.parse(sessionStorage.getItem(name) ?? "[]")));
  /** @param {Kept} conversation */
  const keep = (conversation) =>
    setKept((before) => {
      const all = [conversation, ...before.filter(({ at }) => at !== conversation.at)].slice(0, MAX_KEPT);
      try {
        sessionStorage.setItem(name, JSON.stringify(all));
      } catch {
        sessionStorage.removeItem(name); // larger than the browser keeps: only this page has it
      }
      return all;
    });
  return { kept, keep };
}

/** @param {File} file @returns {Promise<import("./playground-request.js").Attachment>} */
async function readAttachment(file) {
  if (file.size > MAX_FILE_BYTES) throw new Error(`${file.name} is larger than 8 MiB.`);
  const { name } = file;
  const isText = file.type.startsWith("text/") || /\.(md|json|ya?ml|csv|txt|log)$/i.test(name);
  if (isText) return { name, type: "text/plain", data: await file.text() };
  const data = await new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
  return { name, type: file.type || "application/octet-stream", data };
}

/** @param {{ turn: Turn, question: string | undefined }} props `question`: what an answer is to */
function Said({ question, turn: { role, content, attachments = [], end, citations = [], passages = [], error, ms } }) {
  if (role === "user")
    return html`<div class="said"><p class="thought">${content}</p>${attachments.map(({ name }) => html`<span class="meta">${name} </span>`)}</div>`;
  const [tokensIn, tokensOut] = [
    end?.inputTokens ?? end?.usage?.prompt_tokens,
    end?.outputTokens ?? end?.usage?.completion_tokens,
  ];
  return html`<div aria-live="polite"><${Markdown} text=${content || (error ? "" : "…")} />${error ? html`<p class="problem" role="alert">${error}</p>` : null}
    ${
      end &&
      html`<${Facts} facts=${[
        ["Model", end.model],
        ["Cost", money(end.costUsd)],
        ["Tokens in, out", tokensIn === undefined ? "" : `${number(tokensIn)}, ${number(tokensOut)}`],
        ["Took", duration(ms)],
        ["From the cache", end.cached ? "yes" : undefined],
        ["Ended by", end.finishReason],
        ["Run", end.runId && html`<${IdLink} id=${end.runId} text="its steps" />`],
        ["Call", end.logId && html`<${IdLink} id=${end.logId} text="its record" />`],
      ]} />${end._preprocessing ? html`<details><summary>What preprocessing did</summary><pre tabindex="0">${JSON.stringify(end._preprocessing, null, 2)}</pre></details>` : null}`
    }
    <${Citations} citations=${citations} />${end?.logId && end.found !== undefined && question ? html`<${Rate} logId=${end.logId} question=${question} />` : null}
    ${passages.length === 0 ? null : html`<details open><summary>Passages that were found</summary><ol class="passages">${passages.map((/** @type {any} */ one) => html`<li><${PassageLink} one=${one} /> <span class="meta">score ${one.score.toFixed(3)}</span><p class="thought">${one.content}</p></li>`)}</ol></details>`}</div>`;
}

/** The request as programs make it. @param {{ request: import("./playground-request.js").Request | undefined }} props */
function AsProgram({ request }) {
  if (request === undefined) return null;
  return Object.entries(toPrograms(request)).map(
    ([language, text]) =>
      html`<details><summary>As ${language}</summary><${Code} text=${text} what=${`the ${language}`} /></details>`,
  );
}

/** Conversations with up to four models at once. @param {Settings} settings @param {(columns: Column[]) => void} onAnswered */
function useConversation(settings, onAnswered) {
  const [columns, setColumns] = useState(/** @type {Column[]} */ ([{ model: "", turns: [] }]));
  const [isBusy, setIsBusy] = useState(false);
  const running = useRef(/** @type {AbortController | undefined} */ (undefined));
  const latest = useRef(columns);
  latest.current = columns;
  useEffect(() => () => running.current?.abort(), []);
  /** @param {number} at @param {Partial<Turn> & { passages?: any[] }} change */
  const changeLast = (at, change) =>
    setColumns((all) =>
      all.map((column, place) =>
        place === at
          ? {
              ...column,
              turns: column.turns.map((turn, n) => (n === column.turns.length - 1 ? { ...turn, ...change } : turn)),
            }
          : column,
      ),
    );
  /** @param {Turn} question */
  const send = async (question) => {
    const controller = new AbortController();
    running.current = controller;
    setIsBusy(true);
    const asked = columns.map(({ model, turns }) => ({ model, turns: [...turns, question] }));
    setColumns(asked.map(({ model, turns }) => ({ model, turns: [...turns, { role: "assistant", content: "" }] })));
    const work = asked.map(async ({ model, turns }, at) => {
      try {
        const request = toRequest(settings, model, turns);
        if (request.path === "/rag/answer")
          findPassages(question.content, settings.documents).then(
            (passages) => changeLast(at, { passages }),
            () => undefined,
          );
        await ask(request, controller.signal, (change) => changeLast(at, change));
      } catch (error) {
        changeLast(at, { error: controller.signal.aborted ? "Stopped." : /** @type {Error} */ (error).message });
      }
    });
    await Promise.all(work);
    setIsBusy(false);
    onAnswered(latest.current);
  };
  return { columns, setColumns, isBusy, send, stop: () => running.current?.abort() };
}

/** @param {{ settings: Settings, set: (name: keyof Settings) => (value: any) => void }} props */
function Parameters({ settings, set }) {
  return html`<details class="wide"><summary>Parameters</summary><div class="actions">
      <${Field} label="Temperature" type="number" min="0" max="2" step="0.1" value=${settings.temperature} onInput=${set("temperature")} />
      <${Field} label="Most tokens" type="number" min="1" value=${settings.maxTokens} onInput=${set("maxTokens")} />
      <${Field} label="Top p" type="number" min="0" max="1" step="0.05" value=${settings.topP} onInput=${set("topP")} />
      <${Field} label="Seed" type="number" value=${settings.seed} onInput=${set("seed")} /></div>
      <${Field} label="Further ones, as JSON" rows="2" class="code" placeholder='{ "reasoning_effort": "low" }' value=${settings.further} onInput=${set("further")} /></details>`;
}

/** Asks models, agents and patterns, one or several side by side. @param {{ me: any }} props */
export function Playground({ me }) {
  const choices = useChoices();
  const collections = useList("/rag/collections?limit=100");
  const [settings, setSettings] = useState(noSettings);
  const [prompt, setPrompt] = useState("");
  const [attachments, setAttachments] = useState(/** @type {import("./playground-request.js").Attachment[]} */ ([]));
  const [problem, setProblem] = useState(/** @type {any} */ (undefined));
  const begun = useRef(new Date().toISOString());
  const { kept, keep } = useHistory(me.keyId);
  const { columns, setColumns, isBusy, send, stop } = useConversation(settings, (answered) =>
    keep({ at: begun.current, settings, columns: answered }),
  );
  /** @param {keyof Settings} name */
  const set = (name) => (/** @type {any} */ value) => setSettings((before) => ({ ...before, [name]: value }));
  /** @param {number} at */
  const setModel = (at) => (/** @type {string} */ model) =>
    setColumns((all) => all.map((column, place) => (place === at ? { ...column, model } : column)));
  /** @param {any} event */
  const attach = async (event) => {
    const files = [...event.target.files];
    event.target.value = "";
    try {
      setProblem(undefined);
      const read = await Promise.all(files.map(readAttachment));
      setAttachments((before) => [...before, ...read]);
    } catch (error) {
      setProblem(error);
    }
  };
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    send({ role: "user", content: prompt, ...(attachments.length > 0 ? { attachments } : {}) });
    setPrompt("");
    setAttachments([]);
  };
  const startOver = () => {
    begun.current = new Date().toISOString();
    setColumns((all) => all.map(({ model }) => ({ model, turns: [] })));
  };
  /** @param {Kept} conversation */
  const open = (conversation) => () => {
    begun.current = conversation.at;
    setSettings(conversation.settings);
    setColumns(conversation.columns);
  };
  const [first] = columns;
  const lastQuestion = first?.turns.findLastIndex(({ role }) => role === "user") ?? -1;
  const request =
    first && lastQuestion >= 0
      ? toRequest({ ...settings, further: "" }, first.model, first.turns.slice(0, lastQuestion + 1))
      : undefined;
  return html`<h1>Playground</h1><${Problem} error=${choices.error ?? problem} /><div class="actions">
      ${columns.map(({ model }, at) => html`<${ModelChoice} label=${at === 0 ? "Model" : `Model ${at + 1}`} value=${model} choices=${choices} withRuns onChange=${setModel(at)} />`)}
      <button type="button" disabled=${isBusy || columns.length === MAX_COLUMNS} onClick=${() => setColumns((all) => [...all, { model: "", turns: [] }])}>Compare with another</button>
      ${columns.length > 1 ? html`<button type="button" disabled=${isBusy} onClick=${() => setColumns((all) => all.slice(0, -1))}>Remove the last</button>` : null}
      ${lastQuestion >= 0 ? html`<button type="button" disabled=${isBusy} onClick=${startOver}>New conversation</button>` : null}</div>
    <div class="columns count-${columns.length}">${columns.map(({ turns }, at) => html`<section key=${at} aria-label=${`Conversation ${at + 1}`}>${turns.map((turn, n) => html`<${Said} turn=${turn} question=${turns[n - 1]?.content} />`)}</section>`)}</div>
    <form onSubmit=${submit}>
      <${Field} label="Prompt" rows="4" value=${prompt} onInput=${setPrompt} required />
      <${Choice} label="Documents" value=${settings.documents} options=${["*", ...collections.items.map(({ name }) => name)]} nameOf=${(/** @type {string} */ name) => (name === "*" ? "all collections" : name)} all="none" onChange=${set("documents")} />
      <label class="button">Attach files <input type="file" multiple onChange=${attach} /></label>
      ${attachments.map(({ name }, at) => html`<span class="meta">${name} <button type="button" class="quiet" aria-label=${`Remove ${name}`} onClick=${() => setAttachments((all) => all.filter((_, place) => place !== at))}>remove</button></span>`)}
      <${Field} label="System prompt" rows="2" value=${settings.system} onInput=${set("system")} />
      <${Parameters} settings=${settings} set=${set} />
      <button type="submit" disabled=${isBusy}>Ask</button>
      <button type="button" disabled=${!isBusy} onClick=${stop}>Stop</button></form>
    ${settings.documents === "" ? null : html`<p class="hint">With documents, a model answers from their passages alone: system prompt, parameters and attachments are not sent. Agents and patterns search by themselves.</p>`}
    <${AsProgram} request=${request} />
    ${kept.length === 0 ? null : html`<h2>History of this tab</h2><ul class="plain">${kept.map((one) => html`<li><button type="button" class="quiet" disabled=${isBusy} onClick=${open(one)}>${one.columns[0]?.turns[0]?.content.slice(0, 80)}</button> <span class="meta">${one.columns.map(({ model }) => model || "auto").join(", ")}, ${new Date(one.at).toLocaleString()}</span></li>`)}</ul>`}`;
}
