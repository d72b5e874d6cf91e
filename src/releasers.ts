export type Release = () => Promise<void> | void;
export type Releasers = {
  /** Registers what must be undone; the last registered is released first. */
  add(release: Release): void;
  /** Releases everything once, in reverse order, and throws the first error only after all had their turn. */
  close(): Promise<void>;
};

/** Runs `open`, and releases what it had registered so far when it throws, so that a partial start leaves nothing open. */
export async function withReleasers<T>(open: (releasers: Releasers) => Promise<T>): Promise<T> {
  const releasers = makeReleasers();
  try {
    return await open(releasers);
  } catch (error) {
    await releasers.close().catch(() => undefined); // the first error, the cause of the others, is the one to tell
    throw error;
  }
}

function makeReleasers(): Releasers {
  const pending: Release[] = [];
  let closing: Promise<void> | undefined;
  const releaseAll = async () => {
    const errors: unknown[] = [];
    for (let release = pending.pop(); release; release = pending.pop()) {
      try {
        await release();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  };
  return {
    add: (release) => void pending.push(release),
    close: () => {
      closing ??= releaseAll();
      return closing;
    },
  };
}
