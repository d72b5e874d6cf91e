import type { Db } from "mongodb";
import { defineCollection, ofTenant, type TenantDocument } from "./collection.ts";
import { makeRecords } from "./records.ts";
import { makeUseStore } from "./use-store.ts";

/** A response of the Responses API that is read again. Its contents are JSON texts: they may have any fields, at any depth. */
export type StoredResponse = TenantDocument & {
  /** The response as its caller got it, without its output. */
  response: string;
  /** Its items. Reasoning is sealed in them, whether its caller got that or not. */
  output: string;
  /** The items of its own input. */
  input: string;
  /** Bytes of the three texts. */
  bytes: { response: number; output: number; input: number };
  /** The responses before it in its conversation, from the first one on. */
  chain: string[];
  /** Items and bytes of its conversation, up to its end. */
  total: { items: number; bytes: number };
  createdAt: Date;
  /** When the store forgets it. */
  expireAt: Date;
};

/** The texts of a response that are read apart. */
export type ResponseText = "input" | "output";

export const responseCollection = defineCollection<StoredResponse>({
  name: "responses",
  indexes: [{ key: { expireAt: 1 }, name: "expire", expireAfterSeconds: 0 }],
});

/** What the store needs for a record beside its texts, in bytes. */
const BYTES_BESIDE_TEXTS = 512;

/** The bytes by which a record counts. */
const bytesOf = ({ bytes: { response, output, input } }: Pick<StoredResponse, "bytes">) =>
  BYTES_BESIDE_TEXTS + response + output + input;

/** Records that one read brings at most; each may have megabytes. */
const BATCH = 8;

export type ResponseStore = ReturnType<typeof makeResponseStore>;

export function makeResponseStore(db: Db) {
  const responses = db.collection<StoredResponse>(responseCollection.name);
  const use = makeUseStore(db);
  const { insert, get, remove } = makeRecords(responses);
  const count = ({ tenantId, expireAt: expiresAt }: StoredResponse, bytes: number) =>
    use.add({ tenantId, kind: "sources", bytes, expiresAt });
  return {
    get,
    /** Where a response stands in its conversation; null when it is not there. */
    about: (tenantId: string, id: string) =>
      responses.findOne<Pick<StoredResponse, "chain" | "total">>(ofTenant(tenantId, { _id: id }), {
        projection: { chain: 1, total: 1 },
      }),
    /** Writes a record, and counts its bytes as stored until it expires. */
    async insert(record: StoredResponse): Promise<void> {
      await Promise.all([insert(record), count(record, bytesOf(record))]);
    },
    /** The bytes that one text of these responses of a tenant has, together. */
    async sumBytes(tenantId: string, ids: readonly string[], text: ResponseText): Promise<number> {
      let sum = 0;
      const found = responses.find(ofTenant(tenantId, { _id: { $in: [...ids] } }), { projection: { bytes: 1 } });
      for await (const { bytes } of found) sum += bytes[text];
      return sum;
    },
    /** These texts of the responses of a tenant, by their ids; those that are not there are left out. */
    async texts<T extends ResponseText>(tenantId: string, ids: readonly string[], wanted: readonly T[]) {
      const texts = new Map<string, Pick<StoredResponse, T>>();
      const projection = Object.fromEntries(wanted.map((text) => [text, 1 as const]));
      const found = responses
        .find(ofTenant(tenantId, { _id: { $in: [...ids] } }))
        .project<Pick<StoredResponse, T | "_id">>(projection)
        .batchSize(BATCH);
      for await (const record of found) texts.set(record._id, record);
      return texts;
    },
    /** Deletes a record; false when it is not there. */
    async remove(tenantId: string, id: string): Promise<boolean> {
      const record = await get(tenantId, id);
      const isRemoved = record !== null && (await remove(tenantId, id));
      if (isRemoved) await count(record, -bytesOf(record));
      return isRemoved;
    },
  };
}
