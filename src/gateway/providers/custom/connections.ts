import { LRUCache } from "lru-cache";
import type { Pool } from "undici";
import { makeShares } from "../../../isolation/shares.ts";
import { defined } from "../../../lib/defined.ts";
import { openGuardedPool, type PoolOptions } from "../../../net/egress.ts";
import type { Logger } from "../../../observe/logger.ts";
import type { CustomProviderRecord } from "../../../store/custom-provider-store.ts";
import type { TransportTimeouts } from "../../resilience/transport.ts";
import type { Provider } from "../provider.ts";
import { type WireName, wires } from "../wires.ts";

/** Maximum custom providers with open connections; the least recently used are closed. */
const MAX_OPENED = 500;
/** A longer response fails, in bytes: its server is a tenant's, and one may come for each of the tenant's calls at once. */
const MAX_RESPONSE_BYTES = 16 << 20;
/** Large answers that are read at once, those of all tenants together; of each tenant one. */
const LARGE_AT_ONCE = 16;

export type ConnectionsDeps = { timeouts: TransportTimeouts; logger: Logger } & Pick<
  PoolOptions,
  "allowOrigins" | "lookup"
>;

/** An open provider, valid as long as its settings stay the same. */
type Opened = Pick<CustomProviderRecord, "baseUrl" | "wire"> & { provider: Provider; pool: Pool };

/** The connections to custom providers, opened when they are first called, under the guard of `openGuardedPool`. */
export function makeConnections({ allowOrigins, lookup, timeouts, logger }: ConnectionsDeps) {
  const opened = new LRUCache<string, Opened>({
    max: MAX_OPENED,
    // Calls under way finish first.
    dispose: ({ pool }) =>
      void pool.close().catch((error: unknown) => logger.warn({ err: error }, "a pool stays open")),
  });
  const options = { allowOrigins, connectMs: timeouts.connectMs, maxBytes: MAX_RESPONSE_BYTES, ...defined({ lookup }) };
  const turns = makeShares({ size: LARGE_AT_ONCE, perOwner: 1 });
  return {
    /** @throws AppError `source_refused` for an address that the operator does not allow any more. */
    open({ _id, tenantId, baseUrl, wire }: CustomProviderRecord): Provider {
      const known = opened.get(_id);
      if (known?.baseUrl === baseUrl && known.wire === wire) return known.provider;
      const pool = openGuardedPool(baseUrl, options);
      const enterLarge = (signal: AbortSignal) => turns.enter(tenantId, signal);
      const provider = wires[wire as WireName].open({ baseUrl, timeouts, dispatcher: pool, enterLarge }); // as the schema let it in
      opened.set(_id, { baseUrl, wire, provider, pool });
      return provider;
    },
    /** Closes the connections to a provider once its calls have ended. */
    drop: (id: string) => void opened.delete(id),
    /** Ends all connections; calls under way fail. */
    close: async () => void (await Promise.all([...opened.values()].map(({ pool }) => pool.destroy()))),
  };
}
