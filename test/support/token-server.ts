import { once } from "node:events";
import { createServer } from "node:http";
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from "jose";
import Provider from "oidc-provider";

export type TokenServer = {
  issuer: string;
  /** An access token, as a client gets it. */
  grant(scope: string): Promise<string>;
  /** A token of the test's own making, signed by the server's key unless another one is given. */
  sign(claims: JWTPayload, more?: { alg?: string; key?: CryptoKey | Uint8Array; kid?: string }): Promise<string>;
  /** Puts a new key in the place of the server's. */
  rotate(): Promise<void>;
  close(): Promise<void>;
};

type Key = { kid: string; privateKey: CryptoKey; jwk: JWK };

const client = { client_id: "runtime", client_secret: "the-secret-of-the-client" };
const scopes = "switchyard:member switchyard:admin switchyard:owner other";

/** An authorization server on loopback, by oidc-provider, whose tokens are for `audience` and of a tenant. */
export async function startTokenServer({
  audience,
  tenant,
}: {
  audience: string;
  tenant: string;
}): Promise<TokenServer> {
  let key = await makeKey("first");
  let provider: Provider | undefined;
  const server = createServer((request, response) => void provider?.callback()(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the token server has no port");
  const issuer = `http://127.0.0.1:${address.port}`;
  provider = makeProvider({ issuer, audience, tenant, key });
  return {
    issuer,
    async grant(scope) {
      const body = new URLSearchParams({ grant_type: "client_credentials", scope, resource: audience, ...client });
      const response = await fetch(`${issuer}/token`, { method: "POST", body });
      const { access_token: token } = (await response.json()) as { access_token?: string };
      if (token === undefined) throw new Error(`no token: ${response.status}`);
      return token;
    },
    sign: (claims, more = {}) =>
      new SignJWT(claims)
        .setProtectedHeader({ alg: more.alg ?? "RS256", kid: more.kid ?? key.kid })
        .sign(more.key ?? key.privateKey),
    async rotate() {
      key = await makeKey("second");
      provider = makeProvider({ issuer, audience, tenant, key });
    },
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

async function makeKey(kid: string): Promise<Key> {
  const { privateKey } = await generateKeyPair("RS256", { extractable: true });
  return { kid, privateKey, jwk: { ...(await exportJWK(privateKey)), kid, alg: "RS256", use: "sig" } };
}

type Given = { issuer: string; audience: string; tenant: string; key: Key };

function makeProvider({ issuer, audience, tenant, key }: Given): Provider {
  return new Provider(issuer, {
    clients: [
      {
        ...client,
        grant_types: ["client_credentials"],
        redirect_uris: [],
        response_types: [],
        scope: scopes,
        token_endpoint_auth_method: "client_secret_post",
      },
    ],
    scopes: scopes.split(" "),
    jwks: { keys: [key.jwk] },
    extraTokenClaims: () => ({ switchyard_tenant: tenant }),
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: () => ({
          scope: scopes,
          audience,
          accessTokenFormat: "jwt",
          accessTokenTTL: 600,
          jwt: { sign: { alg: "RS256" } },
        }),
      },
    },
  });
}
