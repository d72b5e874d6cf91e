/** Where the metadata of a protected resource is (RFC 9728, section 3). */
export const METADATA_PATH = "/.well-known/oauth-protected-resource";

/** The address by which a client reaches the API, without a slash at its end: the operator's, or the one that was asked for. */
export function baseUrlOf(publicUrl: string | undefined, host: string | undefined): string {
  return publicUrl ?? `http://${/^[\w.:[\]-]{1,255}$/.test(host ?? "") ? host : "localhost"}`;
}

/** `WWW-Authenticate` of a 401: how to authenticate, and where it says who gives tokens (RFC 9728, section 5.1). */
export function challenge(baseUrl: string, path: string): string {
  const metadata = `${baseUrl}${METADATA_PATH}${path === "/mcp" ? path : ""}`;
  return `Bearer realm="switchyard", resource_metadata="${metadata}"`;
}
