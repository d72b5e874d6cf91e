export type Release = () => Promise<void> | void;
export type Disposables = {
  /** Registers what must be undone; the last registered is released first. */
  add(release: Release): void;
  /** Releases everything once, in reverse order, and throws the first error only after all had their turn. */
  close(): Promise<void>;
};

/** Runs `open`, and releases what it had registered so far when it throws, so that a partial start leaves nothing open. */
export async function withDisposables<T>(open: (disposables: Disposables) => Promise<T>): Promise<T> {
  const stack = new AsyncDisposableStack();
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= stack.disposeAsync().catch((error: unknown) => Promise.reject(firstOf(error)));
    return closing;
  };
  try {
    return await open({ add: (release) => stack.defer(release), close });
  } catch (error) {
    await close().catch(() => undefined); // the first error is the cause of the others
    throw error;
  }
}

/** Each error of a stack holds the one before it. */
function firstOf(error: unknown): unknown {
  return error instanceof SuppressedError ? firstOf(error.suppressed) : error;
}
