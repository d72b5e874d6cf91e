import { equalValues, hashKey } from "./compare.ts";

/** A map whose keys are BSON values, equal as MongoDB's groups are: by value, not by identity or text. */
export class ValueMap<T> {
  readonly #buckets = new Map<string, { key: unknown; value: T }[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(key: unknown): T | undefined {
    return this.#find(key)?.value;
  }

  has(key: unknown): boolean {
    return this.#find(key) !== undefined;
  }

  set(key: unknown, value: T): void {
    const found = this.#find(key);
    if (found !== undefined) {
      found.value = value;
      return;
    }
    const hash = hashKey(key);
    const bucket = this.#buckets.get(hash);
    if (bucket === undefined) this.#buckets.set(hash, [{ key, value }]);
    else bucket.push({ key, value });
    this.#size += 1;
  }

  #find(key: unknown): { key: unknown; value: T } | undefined {
    return this.#buckets.get(hashKey(key))?.find((entry) => equalValues(entry.key, key));
  }
}

/** Distinct values in the order in which they came. */
export class ValueSet {
  readonly #members = new ValueMap<true>();
  readonly #values: unknown[] = [];

  constructor(values: readonly unknown[] = []) {
    for (const value of values) this.add(value);
  }

  get size(): number {
    return this.#values.length;
  }

  add(value: unknown): void {
    if (this.#members.has(value)) return;
    this.#members.set(value, true);
    this.#values.push(value);
  }

  has(value: unknown): boolean {
    return this.#members.has(value);
  }

  values(): unknown[] {
    return this.#values;
  }
}
