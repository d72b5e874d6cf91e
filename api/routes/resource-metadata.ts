import { z } from "zod";
import { roles } from "../../src/store/key-store.ts";
import { scopeOf } from "../../src/tenancy/access-tokens.ts";
import { baseUrlOf, METADATA_PATH } from "../resource-url.ts";
import { declareRoutes, type HandlerInput } from "../route.ts";
import { named } from "../schema-names.ts";

const routes = declareRoutes({ auth: "public", tags: ["Tool server"] });

const metadataSchema = named(
  "ResourceMetadata",
  z.object({
    resource: z.string(),
    resource_name: z.literal("Switchyard"),
    authorization_servers: z.array(z.string()).optional().describe("The setting `AUTH_ISSUER`"),
    scopes_supported: z.array(z.string()).optional(),
    bearer_methods_supported: z.array(z.literal("header")),
  }),
);

const declareMetadata = (path: string, resourcePath: string) =>
  routes.get(path, {
    summary: "What a client needs to know to get a token (RFC 9728)",
    responses: { 200: { description: "The metadata", body: metadataSchema } },
    result({ platform, header }: HandlerInput) {
      const { issuer } = platform.config.tokens;
      const resource = `${baseUrlOf(platform.config.http.publicUrl, header("host"))}${resourcePath}`;
      const server =
        issuer === undefined ? {} : { authorization_servers: [issuer], scopes_supported: roles.map(scopeOf) };
      return {
        resource,
        resource_name: "Switchyard" as const,
        ...server,
        bearer_methods_supported: ["header" as const],
      };
    },
  });

/** The metadata of the API as a whole, and of the tool server, whose path the well-known one repeats. */
export const resourceMetadataRoutes = [
  declareMetadata(METADATA_PATH, ""),
  declareMetadata(`${METADATA_PATH}/mcp`, "/mcp"),
];
