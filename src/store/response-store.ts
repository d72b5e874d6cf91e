import type { Db } from "mongodb";
import type { ErrorView } from "../lib/errors.ts";
import { defineCollection, ofTenant, type TenantOwned } from "./collection.ts";
import { gatherWrites } from "./gather-writes.ts";
import type { StoredCaller } from "./key-store.ts";
import { foreignAmong, projectionOf } from "./page.ts";
import { makeWorkRecords, type StoredWork } from "./records.ts";
import type { UseStore } from "./use-store.ts";
import { insertIfAbsent, runWrite } from "./writes.ts";

/** A response of the Responses API that is read again. Its contents are JSON texts: they may have any fields, at any depth. */
export type StoredResponse = TenantOwned & {
  /** The key that asked for it; absent in records of earlier releases. */
  keyId?: string;
  /** The response as its caller got it, without its output. */
  response: string;
  /** Its items. Reasoning is sealed in them, whether its caller got that or not. */
  output: string;
  /** The items of its own input. */
  input: string;
  /** Bytes of the three texts; of `events`, where they are kept, too. */
  bytes: { response: number; output: number; input: number; events?: number };
  /** The responses before it in its conversation, from the first one on. */
  chain: string[];
  /** The conversation whose items come before: those before the first of `chain`, or before its own. */
  conversationId?: string;
  /** Items and bytes of its conversation, up to its end. */
  total: { items: number; bytes: number };
  createdAt: Date;
  /** When the store forgets it. */
  expireAt: Date;
  /** Of one that is made in the background, and true until it has ended. */
  jobId?: string;
  isOpen?: true;
};

/** A response that is made in the background, by a job. */
export type BackgroundResponse = StoredResponse &
  StoredWork & {
    /** Who asked for it: its calls are made and counted for them. */
    caller: StoredCaller & { surface: string };
    /** Whether its events are recorded. */
    isStreamed: boolean;
    /** What is asked for besides the input, as JSON; until it has ended. */
    request?: string;
    /** The turns of its model that ended with searches, as JSON; until it has ended. */
    rounds?: string;
    /** Why it failed. */
    error?: ErrorView;
  };

export const isBackground = (record: StoredResponse | BackgroundResponse): record is BackgroundResponse =>
  record.jobId !== undefined;

/** What a sweep needs of a response, to close it. */
export type OpenResponse = Pick<BackgroundResponse, "_id" | "tenantId" | "jobId">;

const shownFields = ["response", "output", "startedAt"] as const;
/** What of a response its caller is shown. */
export type ShownResponse = Pick<BackgroundResponse, "_id" | "response" | "output" | "startedAt">;

const headFields = ["tenantId", "bytes", "jobId", "isStreamed"] as const;
/** A response without its texts; what one in the background alone has may be absent. */
type ResponseHead = Pick<BackgroundResponse, "_id" | "tenantId" | "bytes"> &
  Partial<Pick<BackgroundResponse, "jobId" | "isStreamed">>;

/** How a response in the background ends. */
type ResponseEnd = Pick<StoredResponse, "response" | "output" | "bytes" | "total"> & { error?: ErrorView };

/** The texts of a response that are read apart. */
export type ResponseText = "input" | "output";

export const responseCollection = defineCollection<StoredResponse>({
  name: "responses",
  indexes: [
    { key: { isOpen: 1, updatedAt: 1 }, name: "open", partialFilterExpression: { isOpen: true } },
    { key: { expireAt: 1 }, name: "expire", expireAfterSeconds: 0 },
  ],
});

/** What the store needs for a record beside its texts, in bytes. */
const BYTES_BESIDE_TEXTS = 512;

/** What an id of the conversation takes, in bytes. */
const BYTES_OF_ID = 48;

/** The bytes by which a record counts. */
const bytesOf = ({ bytes: { response, output, input, events = 0 }, chain }: Pick<StoredResponse, "bytes" | "chain">) =>
  BYTES_BESIDE_TEXTS + BYTES_OF_ID * chain.length + response + output + input + events;

/** Records of more bytes are written each by itself. */
const MAX_GATHERED_BYTES = 64 << 10;
/** Records that one write brings at most; together they stay far below what a message to the store may have. */
const MAX_GATHERED = 200;
/** The least time between two such writes, in ms: a busy process waits as long for more records, since a write has its price. */
const GATHER_MS = 6;

/** Records that one read brings at most; each may have megabytes. */
const BATCH = 8;

export type ResponseStore = ReturnType<typeof makeResponseStore>;

export function makeResponseStore(db: Db, use: Pick<UseStore, "add" | "addLater">) {
  const responses = db.collection<StoredResponse>(responseCollection.name);
  const background = db.collection<BackgroundResponse>(responseCollection.name);
  const { update, get, remove, ...work } = makeWorkRecords(background, {
    watched: { isOpen: true },
    fields: ["tenantId", "jobId"],
  });
  const toUse = ({ tenantId, expireAt: expiresAt }: StoredResponse, bytes: number) => {
    return { tenantId, kind: "sources" as const, bytes, expiresAt };
  };
  const count = (record: StoredResponse, bytes: number) => use.add(toUse(record, bytes));
  const { add: insertGathered } = gatherWrites<StoredResponse>(
    (documents) => runWrite(db, { insert: responseCollection.name, documents, ordered: false }),
    { most: MAX_GATHERED, everyMs: GATHER_MS },
  );
  const insertAlone = (record: StoredResponse) => insertIfAbsent(responses, record);
  return {
    ...work,
    get: (tenantId: string, id: string): Promise<StoredResponse | BackgroundResponse | null> => get(tenantId, id),
    /** Those of these responses of a tenant that another key, or none that is known, has asked for. */
    foreignTo: async (tenantId: string, keyId: string, ids: readonly string[]): Promise<string[]> =>
      foreignAmong(responses, ofTenant(tenantId, { _id: { $in: [...ids] } }), keyId),
    /** What of a response its caller is shown; null when it is not there. */
    shown: (tenantId: string, id: string) =>
      background.findOne<ShownResponse>(ofTenant(tenantId, { _id: id }), { projection: projectionOf(shownFields) }),
    /** What is known of a response without its texts; null when it is not there. */
    withoutTexts: (tenantId: string, id: string) =>
      background.findOne<ResponseHead>(ofTenant(tenantId, { _id: id }), { projection: projectionOf(headFields) }),
    /** Where a response stands in its conversation; null when it is not there. */
    about: (tenantId: string, id: string) =>
      responses.findOne<Pick<StoredResponse, "chain" | "total" | "isOpen" | "conversationId">>(
        ofTenant(tenantId, { _id: id }),
        {
          projection: { chain: 1, total: 1, isOpen: 1, conversationId: 1 },
        },
      ),
    /** Writes a record, together with others that come at the same time, and counts its bytes as stored until it expires. */
    async insert(record: StoredResponse | BackgroundResponse): Promise<void> {
      const bytes = bytesOf(record);
      // A command of the store is not repeated by the driver, and one record must not fail the others of its group.
      try {
        await (bytes > MAX_GATHERED_BYTES ? insertAlone : insertGathered)(record);
      } catch (error) {
        if (bytes > MAX_GATHERED_BYTES) throw error;
        await insertAlone(record);
      }
      use.addLater(toUse(record, bytes));
    },
    /** Closes an open response; false for one that has ended, which stays as it is. */
    async finish(record: BackgroundResponse, { response, output, bytes, total, error }: ResponseEnd): Promise<boolean> {
      const ended = await update(record.tenantId, record._id, {
        $set: { response, output, bytes, total, ...(error ? { error } : {}) },
        $unset: { isOpen: "" as const, request: "" as const, rounds: "" as const },
      });
      if (ended) await count(record, bytesOf({ ...record, bytes }) - bytesOf(record));
      return ended;
    },
    /** Keeps the turns of an open response; false when it has ended. */
    keepRounds: (tenantId: string, id: string, rounds: string) => update(tenantId, id, { $set: { rounds } }),
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
