import { openOutside } from "./outside.ts";

/** Longest wait for a callback once its job's end is known, in ms. Callbacks are sent by a schedule, and so are not timed. */
const REPORT_TIMEOUT_MS = 15_000;

/** The victims' receiver of callbacks. */
export type Reports = Awaited<ReturnType<typeof openReports>>;

export async function openReports() {
  const { origin, answer, close } = await openOutside();
  const expected = new Map<string, () => void>();
  let count = 0;
  answer((request, response) => {
    expected.get(request.url ?? "")?.();
    request.resume();
    response.writeHead(204).end();
  });
  return {
    origin,
    close,
    /** An address for one callback; `comes` tells whether it came in time. */
    next() {
      count += 1;
      const path = `/reports/${count}`;
      const came = Promise.withResolvers<void>();
      expected.set(path, came.resolve);
      return { url: `${origin}${path}`, comes: () => arrives(came.promise) };
    },
  };
}

function arrives(report: Promise<void>): Promise<boolean> {
  return new Promise((resolve) => {
    const late = setTimeout(() => resolve(false), REPORT_TIMEOUT_MS);
    void report.then(() => {
      clearTimeout(late);
      resolve(true);
    });
  });
}
