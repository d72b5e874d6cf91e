import { createHash, randomInt } from "node:crypto";
import { z } from "zod";
import { defined, toView } from "../lib/defined.ts";
import { idSchema, newId } from "../lib/ids.ts";
import { type ApiKeyRecord, roles, type ShownApiKey } from "../store/key-store.ts";
import type { Caller } from "./roles.ts";

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const SECRET_LENGTH = 32;
const keyPattern = /^sk_[0-9A-Za-z]{32}$/;

/** 32 random base62 characters, about 190 bits. */
export function makeSecret(): string {
  return Array.from({ length: SECRET_LENGTH }, () => alphabet[randomInt(alphabet.length)]).join("");
}

/** A new API key. */
export function makeApiKey(): string {
  return `sk_${makeSecret()}`;
}

/** Whether `text` can be an API key at all. */
export function isApiKey(text: string): boolean {
  return keyPattern.test(text);
}

/** SHA-256 of a key, in hex. Keys are random, so that a slow hash would add nothing. */
export function hashApiKey(key: string): string {
  return createHash("sha256").update(key).digest("hex");
}

/** What a key is made for. `keyId` is set where a second key must not be made. */
export type NewApiKey = Pick<ApiKeyRecord, "tenantId" | "role" | "subject" | "name" | "collections" | "expiresAt"> & {
  keyId?: string;
};

/** The record of a key, ready to be stored. */
export function toApiKeyDocument(key: string, { keyId = newId("apiKey"), ...given }: NewApiKey): ApiKeyRecord {
  return { _id: keyId, ...given, hash: hashApiKey(key), preview: previewOf(key), createdAt: new Date() };
}

/** What a key is recognised by, without giving it away. */
export const previewOf = (key: string) => `${key.slice(0, 7)}…${key.slice(-4)}`;

/** Whether a stored key may be used at the time `at`. */
export function isUsable(key: ApiKeyRecord, at: Date): boolean {
  return key.revokedAt === undefined && (key.expiresAt === undefined || key.expiresAt > at);
}

/** The caller that this key stands for. */
export function toCaller({ _id: keyId, tenantId, subject, role, collections, expiresAt }: ApiKeyRecord): Caller {
  return { tenantId, keyId, subject, role, collections, ...defined({ expiresAt }) };
}

/** A key as `GET /keys` shows it. */
export const apiKeyViewSchema = z.object({
  keyId: idSchema("apiKey"),
  keyPreview: z.string(),
  role: z.enum(roles),
  subject: z.string(),
  name: z.string().optional(),
  collections: z.array(z.string()).optional().describe("The collections of documents that it is limited to"),
  createdAt: z.iso.datetime(),
  expiresAt: z.iso.datetime().optional(),
  lastUsedAt: z.iso.datetime().optional().describe("To the minute"),
});
type ApiKeyView = z.output<typeof apiKeyViewSchema>;

/** What an owner may see of a key: never its hash. */
export function toApiKeyView({
  _id,
  preview,
  role,
  subject,
  createdAt,
  name,
  collections,
  expiresAt,
  lastUsedAt,
}: ShownApiKey): ApiKeyView {
  return toView({
    keyId: _id,
    keyPreview: preview,
    role,
    subject,
    createdAt,
    name,
    collections,
    expiresAt,
    lastUsedAt,
  });
}
