import { z } from "zod";

export type JsonSchema = Record<string, unknown>;

/**
 * The JSON Schema (draft 2020-12, as OpenAPI 3.1 takes it) of a zod schema: of what it accepts (`input`) or of what it
 * gives (`output`). What JSON Schema cannot say becomes "anything", never an error.
 */
export function toJsonSchema(schema: z.ZodType, side: "input" | "output"): JsonSchema {
  const { $schema: _, ...json } = z.toJSONSchema(schema, {
    target: "draft-2020-12",
    io: side,
    unrepresentable: "any",
    override: ({ zodSchema, jsonSchema }) => {
      // An output object may grow fields: additive changes are no breach of the contract.
      if (side === "output" && zodSchema._zod.def.type === "object") delete jsonSchema.additionalProperties;
    },
  });
  return json;
}
