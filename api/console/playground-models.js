import { html } from "./html.js";
import { useLoad } from "./load.js";
import { money, number } from "./ui.js";

/** What can be asked: models, agents and patterns; and what cannot be used, with the reason. */

/** The models of the catalogue that answer, and the names of agents and patterns. */
export function useChoices() {
  const models = useLoad("/ai/models");
  const names = useLoad("/v1/models");
  const chat = (models.value?.models ?? []).filter(
    (/** @type {any} */ { type }) => !["embedding", "rerank"].includes(type),
  );
  const runs = (names.value?.data ?? []).map((/** @type {any} */ { id }) => id);
  return {
    error: models.error ?? names.error,
    models: chat,
    agents: runs.filter((/** @type {string} */ id) => id.startsWith("agent:")),
    patterns: runs.filter((/** @type {string} */ id) => id.startsWith("composite:")),
  };
}

/** @typedef {ReturnType<typeof useChoices>} Choices */

/** A price for a million tokens. @param {number} per1k */
const perMillion = (per1k) => money(Math.round(per1k * 1e6) / 1e3);

/** What a model costs and takes, in a line. @param {any} model */
export const aboutModel = ({ inputCostPer1k, outputCostPer1k, contextWindow, supportedFeatures }) =>
  `${perMillion(inputCostPer1k)} in, ${perMillion(outputCostPer1k)} out for 1 M tokens; ${number(contextWindow)} tokens${supportedFeatures.length > 0 ? `; takes ${supportedFeatures.join(", ").replaceAll("_", " ")}` : ""}`;

/**
 * `withRuns`: agents and patterns can be chosen too.
 * @param {{ label: string, value: string, choices: Choices, withRuns?: boolean, all?: string, onChange: (value: string) => void }} props
 */
export function ModelChoice({ label, value, choices, withRuns = false, all = "auto", onChange }) {
  const usable = choices.models.filter((/** @type {any} */ { available }) => available);
  const others = choices.models.filter((/** @type {any} */ { available }) => !available);
  const known = [...usable.map((/** @type {any} */ { id }) => id), ...choices.agents, ...choices.patterns];
  /** @param {string} id */
  const option = (id) => html`<option value=${id} selected=${id === value}>${id}</option>`;
  const chosen = choices.models.find((/** @type {any} */ { id }) => id === value);
  return html`<label class="field">${label}
    <select value=${value} onChange=${(/** @type {any} */ event) => onChange(event.target.value)}>
      <option value="">${all}</option>
      ${value === "" || known.includes(value) ? null : option(value)}
      <optgroup label="Models">${usable.map((/** @type {any} */ { id }) => option(id))}</optgroup>
      ${withRuns && choices.agents.length > 0 ? html`<optgroup label="Agents">${choices.agents.map(option)}</optgroup>` : null}
      ${withRuns ? html`<optgroup label="Patterns">${choices.patterns.map(option)}</optgroup>` : null}
      ${others.length > 0 ? html`<optgroup label="Cannot be used">${others.map((/** @type {any} */ { id, unavailableBecause }) => html`<option value=${id} disabled>${id}: ${unavailableBecause ?? "not available"}</option>`)}</optgroup>` : null}
    </select>${chosen ? html`<span class="meta">${aboutModel(chosen)}</span>` : null}</label>`;
}
