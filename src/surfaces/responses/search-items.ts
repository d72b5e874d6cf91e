import type { OutputItem, ResponseEvent } from "./response-schemas.ts";

type SearchItem = Extract<OutputItem, { type: "file_search_call" }>;
type Begun = { item: SearchItem; at: { item_id: string; output_index: number } };

/** A passage that a search found. */
export type SearchResult = NonNullable<SearchItem["results"]>[number];

/** What the search of a response reports: that it begins, and what it has found. */
export type SearchDelta =
  | { type: "search-call"; id: string; queries: string[] }
  | { type: "search-result"; id: string; queries?: string[]; results: SearchResult[]; hasFailed: boolean };

/** Takes the events; undefined when they are not needed: then none is made. */
type Emit = ((event: ResponseEvent) => void) | undefined;

/** The searches of a response: those of one turn begin together, and end in the order in which they began. */
export function makeSearchItems(
  begin: (toItem: (id: string) => SearchItem) => Begun,
  { emit, areResultsShown }: { emit: Emit; areResultsShown: boolean },
) {
  let open: (Begun & { id: string })[] = [];
  const end = ({ item, at }: Begun, status: SearchItem["status"]) => {
    item.status = status;
    emit?.({ type: "response.file_search_call.completed", ...at });
    emit?.({ type: "response.output_item.done", output_index: at.output_index, item });
  };
  return {
    take(delta: SearchDelta): void {
      if (delta.type === "search-call") {
        const { id, queries } = delta;
        const begun = begin((itemId) => {
          return { type: "file_search_call", id: itemId, status: "in_progress", queries, results: null };
        });
        emit?.({ type: "response.file_search_call.in_progress", ...begun.at });
        emit?.({ type: "response.file_search_call.searching", ...begun.at });
        begun.item.status = "searching";
        open.push({ ...begun, id });
        return;
      }
      const search = open.find(({ id }) => id === delta.id);
      if (!search) return;
      open = open.filter((one) => one !== search);
      if (delta.queries) search.item.queries = delta.queries;
      if (areResultsShown && !delta.hasFailed) search.item.results = delta.results;
      end(search, delta.hasFailed ? "failed" : "completed");
    },
    /** Ends the searches that are still open. */
    end(): void {
      for (const search of open.splice(0)) end(search, "incomplete");
    },
  };
}
