import { toQuery } from "./api.js";
import { html } from "./html.js";
import { IdLink } from "./ui.js";

/** Where a passage that was cited stands, with those that follow it. @param {{ documentId: string, chunkId: string }} place */
const addressOf = ({ documentId, chunkId }) => `/console/documents/${documentId}?${toQuery({ chunk: chunkId })}`;

/** Where in its document a passage is. @param {{ heading?: string, page?: number }} place */
export const placeOf = ({ heading, page }) =>
  [heading, page === undefined ? undefined : `page ${page}`].filter(Boolean).join(", ");

/** What an answer cites: each with its words, and a link to its passage. @param {{ citations: readonly any[] | undefined }} props */
export function Citations({ citations = [] }) {
  if (citations.length === 0) return null;
  return html`<h3>Citations</h3><ol class="citations">${citations.map(
    (one) =>
      html`<li><a href=${addressOf(one)}>${one.title ?? "the passage"}</a> <span class="meta">${placeOf(one)}</span>${one.quote ? html`<p class="thought">${one.quote}</p>` : null}</li>`,
  )}</ol>`;
}

/** A passage that was found, with a link to it. @param {{ one: any }} props */
export const PassageLink = ({ one }) =>
  one.chunkId
    ? html`<a href=${addressOf(one)}>${one.title}</a>`
    : html`<${IdLink} id=${one.documentId} text=${one.title} />`;
