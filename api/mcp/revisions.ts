import type { HandlerInput } from "../route.ts";
import { type Incoming, isObject, RpcFault, rpcCodes } from "./json-rpc.ts";

/** The revisions that begin with `initialize`, oldest first (modelcontextprotocol.io/specification/<revision>). */
const handshakeRevisions = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] as const;
/** The revision whose requests stand alone: each says in `_meta` what an `initialize` said before. */
export const statelessRevision = "2026-07-28";
/** Every revision that we speak, newest first. */
export const revisions = [statelessRevision, ...handshakeRevisions.toReversed()] as const;
export type Revision = (typeof revisions)[number];

/** What a client takes for granted that sends no revision: the header came with 2025-06-18. */
const silentRevision = "2025-03-26";

const metaOf = (field: string) => `io.modelcontextprotocol/${field}`;
export const serverInfoKey = metaOf("serverInfo");
const versionKey = metaOf("protocolVersion");
const capabilitiesKey = metaOf("clientCapabilities");

/** The extension by which clients of 2026-07-28 take a task for a result. */
export const tasksExtension = metaOf("tasks");

/** The revision of a request, and what its client can do; before 2026-07-28 that is said once, and not known here. */
export type Dialect = { revision: Revision; capabilities: Readonly<Record<string, unknown>> };

/** Whether two revisions are in order: they are dates. */
export const isSince = ({ revision }: Pick<Dialect, "revision">, since: Revision): boolean => revision >= since;

/** The revision that `initialize` agrees on: the one that was offered, or else the newest that begins so. */
export function agreeOn(offered: unknown): Revision {
  if (offered === undefined) return handshakeRevisions[0];
  return handshakeRevisions.find((revision) => revision === offered) ?? "2025-11-25";
}

type Request = Extract<Incoming, { kind: "request" }>;
type Headers = Pick<HandlerInput, "header">;

/** The revision that the headers name. @throws RpcFault for one that we do not speak. */
export function readHeader({ header }: Headers): Revision {
  const named = header("mcp-protocol-version");
  if (named === undefined) return silentRevision;
  const known = revisions.find((revision) => revision === named);
  if (known === undefined) throw unknownRevision(named);
  return known;
}

/**
 * How a request is to be answered: one with a revision in its `_meta`, or with the header of 2026-07-28, by that revision,
 * whose headers it must repeat; any other one by the revision in its header.
 * @throws RpcFault `params`, `headerMismatch`, `unknownRevision`, each with the status 400.
 */
export function readDialect(headers: Headers, request: Request): Dialect {
  const { _meta: meta } = request.params;
  const isStateless =
    (isObject(meta) && versionKey in meta) || headers.header("mcp-protocol-version") === statelessRevision;
  if (!isStateless) return { revision: readHeader(headers), capabilities: {} };
  const version = isObject(meta) ? meta[versionKey] : undefined;
  const capabilities = isObject(meta) ? meta[capabilitiesKey] : undefined;
  if (typeof version !== "string") throw missingMeta(versionKey, "a string");
  if (!isObject(capabilities)) throw missingMeta(capabilitiesKey, "an object");
  requireHeader(headers, "mcp-protocol-version", version);
  if (version !== statelessRevision) throw unknownRevision(version);
  requireHeader(headers, "mcp-method", request.method);
  const name = namedBy(request);
  if (typeof name === "string") requireHeader(headers, "mcp-name", name);
  return { revision: statelessRevision, capabilities };
}

/** What the header `Mcp-Name` of a request must repeat. */
function namedBy({ method, params }: Request): unknown {
  if (method === "tools/call") return params.name;
  return ["tasks/get", "tasks/update", "tasks/cancel"].includes(method) ? params.taskId : undefined;
}

function missingMeta(field: string, form: string): RpcFault {
  return new RpcFault(rpcCodes.params, `params._meta["${field}"] must be ${form}.`, { status: 400 });
}

function unknownRevision(requested: string): RpcFault {
  const data = { supported: revisions, requested: requested.slice(0, 64) };
  return new RpcFault(rpcCodes.unknownRevision, "This revision of the protocol is not spoken here.", {
    data,
    status: 400,
  });
}

/** @throws RpcFault `headerMismatch` unless a header repeats what the body says. */
export function requireHeader({ header }: Headers, name: string, value: string): void {
  const sent = header(name);
  if (sent !== undefined && decodeHeader(sent) === value) return;
  const problem = sent === undefined ? "is missing" : "differs from the body";
  throw new RpcFault(rpcCodes.headerMismatch, `The header ${name} ${problem}.`, { status: 400 });
}

/** The value of a header that may stand in Base64, as `=?base64?…?=`; undefined for one that is badly encoded. */
function decodeHeader(text: string): string | undefined {
  const encoded = /^=\?base64\?(.*)\?=$/.exec(text)?.[1];
  if (encoded === undefined) return text;
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(encoded)) return undefined;
  return Buffer.from(encoded, "base64").toString("utf8");
}
