import { createHash } from "node:crypto";
import type { Platform } from "../src/platform.ts";
import type { ApiContext } from "./context.ts";
import { anonymous } from "./middleware/authenticate.ts";
import type { KeepFile } from "./middleware/multipart.ts";
import type { AnyRoute } from "./route.ts";

/**
 * How a call keeps its file as it comes. What its handler does not take is removed when the call is over: that of a form which
 * is wrong, and that of a repeat by its idempotency key.
 */
export function makeKeepFile(ctx: ApiContext, platform: Platform, route: AnyRoute): KeepFile | undefined {
  const { keepsFile } = route;
  if (keepsFile === undefined) return undefined;
  return async (chunks) => {
    const hash = createHash("sha256");
    const hashed = async function* () {
      for await (const chunk of chunks) {
        hash.update(chunk);
        yield chunk;
      }
    };
    const { caller = anonymous, signal } = ctx.state;
    const { id, bytes, remove } = await keepsFile.keep({ platform, caller }, hashed());
    let isTaken = false;
    const release = () => {
      if (isTaken) return;
      remove().catch((err: unknown) => platform.logger.warn({ err, fileId: id }, "an upload could not be removed"));
    };
    if (signal.aborted || ctx.res.closed) release();
    else ctx.res.once("close", release);
    return {
      bytes,
      sha256: hash.digest("hex"),
      take: () => {
        isTaken = true;
        return id;
      },
    };
  };
}
