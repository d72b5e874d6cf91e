import { knownBlocks, messagesBodySchema, ownToolSchema, turnSchema } from "./schemas.ts";

const fieldsOf = ({ shape }: { shape: object }): ReadonlySet<string> => new Set(Object.keys(shape));
const bodyFields = fieldsOf(messagesBodySchema);
const turnFields = fieldsOf(turnSchema.options[0]);
const toolFields = fieldsOf(ownToolSchema);
const blockFields = new Map<string, ReadonlySet<string>>(
  knownBlocks.map((block) => [block.shape.type.value, fieldsOf(block)]),
);
const partFields = {
  thinking: new Set(["type", "budget_tokens"]),
  output_config: new Set(["effort", "format"]),
  metadata: new Set(["user_id"]),
};

/** The fields of a body, as it came, that are not read, but for those of its parts. */
export const unknownFields = (body: object): string[] => Object.keys(body).filter((name) => !bodyFields.has(name));

/** What is looked through of a body that fits its schema. */
type Parts = {
  messages?: { content?: unknown }[];
  system?: unknown;
  tools?: object[] | null;
  [field: string]: unknown;
};

/**
 * The fields of a body that fits its schema, as it came, that are not read: each once, however many of its turns, blocks and
 * tools have it (as `cache_control`). Fields that are null ask for nothing.
 */
export function unreadFields(body: object): string[] {
  const unread = new Set(unknownFields(body));
  const note = (value: unknown, known: ReadonlySet<string>, path = "") => {
    for (const [name, field] of Object.entries(Object(value)))
      if (field !== null && !known.has(name)) unread.add(`${path}${name}`);
  };
  const noteBlocks = (blocks: unknown) => {
    if (!Array.isArray(blocks)) return;
    for (const block of blocks) {
      const known = blockFields.get(block.type);
      if (known === undefined) continue; // it is named as a whole
      note(block, known);
      if (block.type === "tool_result") noteBlocks(block.content);
    }
  };
  const { messages = [], system, tools, ...parts }: Parts = { ...body };
  for (const turn of messages) {
    note(turn, turnFields);
    noteBlocks(turn.content);
  }
  noteBlocks(system);
  for (const tool of tools ?? []) if (Object.hasOwn(tool, "input_schema")) note(tool, toolFields);
  for (const [name, known] of Object.entries(partFields)) note(parts[name], known, `${name}.`);
  return [...unread];
}
