import { setImmediate as endOfTurn } from "node:timers/promises";

/**
 * Makes many reads of one record at a time few. All that ask in one turn of the event loop share a read; those that ask while
 * it is under way share the next one, which begins when it has ended. So each caller gets the record as it was after it asked.
 */
export function shareReads<T>(read: (tenantId: string, id: string) => Promise<T>) {
  const underWay = new Map<string, Promise<unknown>>();
  const next = new Map<string, Promise<T>>();

  const begin = async (key: string, tenantId: string, id: string): Promise<T> => {
    await underWay.get(key);
    await endOfTurn();
    next.delete(key);
    const reading = read(tenantId, id);
    const ended = reading.then(noop, noop);
    underWay.set(key, ended);
    try {
      return await reading;
    } finally {
      if (underWay.get(key) === ended) underWay.delete(key);
    }
  };
  return (tenantId: string, id: string): Promise<T> => {
    const key = `${tenantId}:${id}`;
    const joined = next.get(key);
    if (joined) return joined;
    const begun = begin(key, tenantId, id);
    next.set(key, begun);
    return begun;
  };
}

const noop = () => undefined;
