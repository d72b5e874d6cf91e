import { at, type IngestClient, makeIngestClient } from "./client.ts";
import type { Manifest } from "./manifest.ts";

/** The call cannot work as it is; the message is for a person. */
export class Refusal extends Error {
  override name = "Refusal";
}

/** How many noted documents are looked for, where a manifest of an earlier release does not say whose they are. */
const LOOKED_FOR = 5;

type Connection = {
  url: string;
  key: string;
  collection?: string | undefined;
  requireComplete?: boolean | undefined;
  manifest: Manifest;
  /** The manifest's name, for a person. */
  path: string;
};

/** A client whose key is right and whose tenant is that of the manifest. @throws Refusal */
export async function connect({ manifest, path, ...options }: Connection): Promise<IngestClient> {
  const { url } = options;
  const client = makeIngestClient(options);
  const { status, body, message } = await client.me();
  if (status === 0) throw new Refusal(`There is no API at ${url}: ${message}`);
  const tenantId = at(body, "tenantId");
  if (status !== 200 || typeof tenantId !== "string") throw new Refusal(`${url} says ${message}`);
  if (await isOfAnotherTenant(client, manifest, tenantId))
    throw new Refusal(
      `${path} notes documents that ${url} does not have: it was written for another data folder or tenant. Delete it, or name another one by --manifest.`,
    );
  manifest.setTenant(tenantId);
  return client;
}

async function isOfAnotherTenant(client: IngestClient, manifest: Manifest, tenantId: string): Promise<boolean> {
  const loaded = manifest.entries().filter(({ state }) => state === "done");
  const [last] = loaded.sort((one, other) => other.at.localeCompare(one.at));
  if (last?.tenantId !== undefined) return last.tenantId !== tenantId;
  // One that is gone proves nothing, because people delete documents.
  const ids = loaded.slice(0, LOOKED_FOR).flatMap(({ documentId }) => documentId ?? []);
  const answers = await Promise.all(ids.map((id) => client.document(id)));
  return answers.length > 0 && answers.every(({ status }) => status === 404);
}
