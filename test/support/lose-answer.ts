import { Collection, MongoNetworkError } from "mongodb";

/** Loses the answers to what the driver's calls of a name do in a collection, so many times; the result puts the driver back. */
export function loseAnswers(name: "insertOne" | "findOneAndUpdate", of: string, times: number) {
  const call: Call = Collection.prototype[name];
  let losses = 0;
  async function losing(this: Collection, ...asked: never[]) {
    const answer = await Reflect.apply(call, this, asked);
    if (this.collectionName !== of || losses === times) return answer;
    losses += 1;
    throw new MongoNetworkError("the answer is lost");
  }
  Object.assign(Collection.prototype, { [name]: losing });
  return { losses: () => losses, restore: () => void Object.assign(Collection.prototype, { [name]: call }) };
}

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
  async function losing(this: S, ...given: never[]) {
    calls += 1;
    if (calls <= skip) return Reflect.apply(call, this, given);
    restore();
    await Reflect.apply(call, this, given);
    throw new MongoNetworkError("the answer is lost");
  }
  store[name] = losing as S[N];
  return restore;
}
