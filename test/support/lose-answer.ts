import { MongoNetworkError } from "mongodb";

type Call = (...given: never[]) => Promise<unknown>;

/**
 * Has the store do what one of its functions is called for, and loses its answer, once: at the call after `skip` others. Returns what
 * puts the function back, for a test that may end before.
 */
export function loseAnswer<N extends string, S extends { [K in N]: Call }>(store: S, name: N, skip = 0): () => void {
  const call: Call = store[name];
  let calls = 0;
  const restore = () => {
    store[name] = call as S[N];
  };
  const losing: Call = async (...given) => {
    calls += 1;
    if (calls <= skip) return call(...given);
    restore();
    await call(...given);
    throw new MongoNetworkError("the answer is lost");
  };
  store[name] = losing as S[N];
  return restore;
}
