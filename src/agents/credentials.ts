import { AppError, invalidRequest } from "../lib/errors.ts";
import type { DataKeys } from "../tenancy/data-keys.ts";
import { open, seal } from "../tenancy/envelope.ts";

/** A header's value under the tenant's data key, in base64, and what people see of it. */
type Sealed = { sealed: string; preview: string };
/** A stored value. Agents of earlier releases, and values that only refer to the run's context, hold it as it is. */
type StoredValue = string | Sealed;
type Headers<V> = Readonly<Record<string, V>>;
/** A tool as far as it may hold headers, which stand in the field `headers` of its config. */
type Tool = { type: string; name?: string | undefined; config: Record<string, unknown> };

/** Values that hold nothing of their own, and so nothing secret. */
const references = /^((Bearer|Basic|Token) +)?\{\{\s*context\.[\w.-]+\s*\}\}$/i;
/** Shortest text whose last characters a preview shows. */
const MIN_SHOWN = 16;

export type Credentials = ReturnType<typeof makeCredentials>;

/** The credentials that tools of agents send as headers: sealed when an agent is written, opened when a tool is used. */
export function makeCredentials(dataKeys: Pick<DataKeys, "find" | "ensure">) {
  const sealText = async (tenantId: string, text: string): Promise<StoredValue> => {
    if (references.test(text)) return text;
    const sealed = seal(await dataKeys.ensure(tenantId), Buffer.from(text), contextOf(tenantId)).toString("base64");
    return { sealed, preview: previewOf(text) };
  };
  return {
    /**
     * Tools with their headers sealed. A value that is the preview of the one in `earlier` keeps that one, if the tool sends it
     * nowhere but where it was sent before.
     * @throws AppError `invalid_request` for another preview, or another address; `unavailable` where no master key is set.
     */
    seal<T extends Tool>(tenantId: string, tools: readonly T[], earlier: readonly Tool[]): Promise<T[]> {
      const sealTool = async (tool: T, at: number): Promise<T> => {
        const headers = headersOf(tool);
        if (headers === undefined) return tool;
        const former = earlier.find((one) => nameOf(one) === nameOf(tool));
        const before = headersOf(former) ?? {};
        const known = targetsOf(former);
        const isElsewhere = [...targetsOf(tool)].some((target) => !known.has(target));
        const sealed = Object.entries(headers).map(async ([name, value]) => {
          const text = String(value); // the schema takes texts alone
          if (!text.includes("…")) return [name, await sealText(tenantId, text)];
          const kept = before[name];
          if (kept === undefined || previewOf(kept) !== text)
            throw unknownPreview(`tools[${at}].config.headers.${name}`);
          if (isElsewhere && !isReference(kept)) throw movedValue(`tools[${at}].config.headers.${name}`);
          return [name, typeof kept === "string" ? await sealText(tenantId, kept) : kept];
        });
        return { ...tool, config: { ...tool.config, headers: Object.fromEntries(await Promise.all(sealed)) } };
      };
      return Promise.all(tools.map(sealTool));
    },
    /** The plain headers. @throws AppError `provider_key_unreadable`. */
    async open(tenantId: string, headers: Headers<StoredValue> = {}): Promise<Record<string, string>> {
      const values = Object.entries(headers);
      const dataKey = values.some(([, value]) => typeof value !== "string") ? await dataKeys.find(tenantId) : null;
      const opened = values.map(([name, value]) => {
        if (typeof value === "string") return [name, value];
        const plain = dataKey && open(dataKey, Buffer.from(value.sealed, "base64"), contextOf(tenantId));
        if (plain) return [name, plain.toString()];
        throw new AppError("provider_key_unreadable", `The header ${name} cannot be read; set it again in the agent.`);
      });
      return Object.fromEntries(opened);
    },
  };
}

/** A tool with previews in the place of its headers' values. */
export function withPreviews<T extends Tool>(tool: T): T {
  const headers = headersOf(tool);
  if (headers === undefined) return tool;
  const shown = Object.entries(headers).map(([name, value]) => [name, previewOf(value)]);
  return { ...tool, config: { ...tool.config, headers: Object.fromEntries(shown) } };
}

/** Where a tool sends its headers: the origin of its URL, or the hosts that it may call. */
function targetsOf({ config }: Pick<Tool, "config"> = { config: {} }): Set<string> {
  const { url, allowedHosts } = config;
  const origins = typeof url === "string" && URL.canParse(url) ? [new URL(url).origin] : [];
  return new Set([...origins, ...(Array.isArray(allowedHosts) ? allowedHosts.map(String) : [])]);
}

const isReference = (value: StoredValue) => typeof value === "string" && references.test(value);
const contextOf = (tenantId: string) => `agent-header:${tenantId}`;
const nameOf = ({ name, type }: Tool) => name ?? type;
const headersOf = (tool: Tool | undefined) => tool?.config.headers as Headers<StoredValue> | undefined; // by the tool's schema

/** The scheme and the last four characters, as `Bearer …9f3a`; of a short value nothing. */
function previewOf(value: StoredValue): string {
  if (typeof value !== "string") return value.preview;
  if (references.test(value)) return value;
  const scheme = /^(Bearer|Basic|Token) /i.exec(value)?.[0] ?? "";
  return `${scheme}…${value.length < MIN_SHOWN ? "" : value.slice(-4)}`;
}

const movedValue = (param: string) =>
  invalidRequest(param, "The tool sends this value to another address now: set it again.");
const unknownPreview = (param: string) =>
  invalidRequest(param, "This is the preview of a value that is not stored: give the value.");
