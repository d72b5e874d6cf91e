import type { Logger } from "../observe/logger.ts";
import type { Store } from "../store/store.ts";

/** The uses of keys are written together, this often, in ms. */
const WRITE_MS = 60_000;
/** Keys of one write. */
const MAX_WRITTEN = 1_000;

/** Notes when keys are used: of each key one write a minute at most, and none on the path of a call. */
export function makeKeyUse({ apiKeys, logger }: Pick<Store, "apiKeys"> & { logger: Logger }) {
  let used = new Set<string>();
  const write = async () => {
    const keyIds = [...used];
    used = new Set();
    for (let at = 0; at < keyIds.length; at += MAX_WRITTEN) {
      await apiKeys.noteUse(keyIds.slice(at, at + MAX_WRITTEN), new Date());
    }
  };
  // One that is lost is of no consequence: the next use is noted again.
  const writeOrLog = () =>
    write().catch((error: unknown) => logger.debug({ err: error }, "uses of keys are not noted"));
  const timer = setInterval(writeOrLog, WRITE_MS).unref();
  return {
    note: (keyId: string) => void used.add(keyId),
    write,
    close: async () => {
      clearInterval(timer);
      await writeOrLog();
    },
  };
}
