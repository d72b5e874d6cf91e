import { z } from "zod";

export type JsonSchema = Record<string, unknown>;

/**
 * The JSON Schema (draft 2020-12, as OpenAPI 3.1 takes it) of a zod schema: of what it accepts (`input`) or returns
 * (`output`). What JSON Schema cannot express becomes "anything", never an error. `referTo` returns the reference that stands
 * in the place of a schema, where there is one.
 */
export function toJsonSchema(
  schema: z.core.$ZodType,
  side: "input" | "output",
  referTo: (schema: z.core.$ZodType) => string | undefined = () => undefined,
): JsonSchema {
  const { $schema: _, ...json } = z.toJSONSchema(schema, {
    target: "draft-2020-12",
    io: side,
    unrepresentable: "any",
    override: ({ zodSchema, jsonSchema }) => {
      const reference = referTo(zodSchema);
      if (reference !== undefined) {
        for (const key of Object.keys(jsonSchema)) Reflect.deleteProperty(jsonSchema, key);
        jsonSchema.$ref = reference;
      }
      // An output object may grow fields: additive changes are no breach of the contract.
      else if (side === "output" && zodSchema._zod.def.type === "object") delete jsonSchema.additionalProperties;
    },
  });
  return json;
}
