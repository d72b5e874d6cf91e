/** What a provider adds to a prompt for the tools of its own that a client runs, in tokens. */
const TOKENS_OF_OWN_TOOLS = 4_096;
/** Most values of a body that are looked at. */
const MAX_VISITED = 200_000;
/** Top-level fields that name contents which are not in the body. */
const elsewhere = ["container", "conversation", "mcp_servers", "previous_response_id", "thread"];
/** Tools that the provider has written and a client runs: they bring in nothing that is not in a later body. */
const clientTools = /^(custom$|bash_|computer_|memory_|text_editor_)/;

type Fields = Readonly<Record<string, unknown>>;
const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * The most tokens that a body, as it came, has in the parts of it that are not read: every token has a byte at least. Undefined
 * where bytes say nothing: the body names contents that are elsewhere, or holds pictures and documents that nobody has read.
 * @param unknown the top-level fields that are not read, where all else is; undefined: nothing is.
 */
export function unreadTokens(body: Fields, text: string, unknown: readonly string[] | undefined): number | undefined {
  if (namesElsewhere(body)) return undefined;
  if (unknown) return bytesOf(JSON.stringify(Object.fromEntries(unknown.map((name) => [name, body[name]]))));
  return hasMedia(body) ? undefined : bytesOf(text) + TOKENS_OF_OWN_TOOLS;
}

const bytesOf = (text: string) => Buffer.byteLength(text, "utf8");

function namesElsewhere(body: Fields): boolean {
  if (elsewhere.some((name) => (body[name] ?? null) !== null)) return true;
  const tools = Array.isArray(body.tools) ? body.tools : [];
  const isOurs = (tool: unknown) => !isFields(tool) || tool.type === undefined || clientTools.test(String(tool.type));
  return (
    !tools.every(isOurs) || someBlock(body, (block) => block.type === "container_upload" || isRemote(block.source))
  );
}

const isRemote = (source: unknown) => isFields(source) && (source.type === "url" || source.type === "file");

const hasMedia = (body: Fields) => someBlock(body, ({ type }) => type === "image" || type === "document");

/** Whether one of the blocks of a body's messages and instructions, at any depth, is such. What is too large is. */
function someBlock(body: Fields, test: (block: Fields) => boolean): boolean {
  const left: unknown[] = [body.system, body.messages];
  for (let visited = 0; left.length > 0; visited += 1) {
    if (visited > MAX_VISITED) return true;
    const value = left.pop();
    if (Array.isArray(value)) left.push(...value);
    if (!isFields(value)) continue;
    if (test(value)) return true;
    left.push(value.content); // not the input of a tool, which may have fields of any name
  }
  return false;
}
