/** Fields that are always there stay as they are; those that may be `undefined` become optional. */
type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** A copy of an object without the fields that are `undefined`. */
export function defined<T extends object>(fields: T): Defined<T> {
  const kept: { [field: string]: unknown } = {};
  for (const field in fields) if (fields[field] !== undefined) kept[field] = fields[field]; // 0.3 µs, `entries` takes 3
  return kept as Defined<T>; // what is left has no undefined field, which the compiler cannot follow
}

/** The fields of a view: those that are always there, and those that may be; dates as texts. */
export type View<T> = Defined<{ [K in keyof T]: Date extends T[K] ? Exclude<T[K], Date> | string : T[K] }>;

/** A copy of a record's fields as clients see them: dates in ISO 8601, none that is `undefined`. */
export function toView<T extends object>(fields: T): View<T> {
  const shown: { [field: string]: unknown } = {};
  for (const [field, value] of Object.entries(fields)) {
    if (value !== undefined) shown[field] = value instanceof Date ? value.toISOString() : value;
  }
  return shown as View<T>; // as above
}

/** The fields of a body in which null stands for absence. */
export type WithoutNulls<T> = Defined<{
  [K in keyof T]: null extends T[K] ? Exclude<T[K], null> | undefined : T[K];
}>;

/** A copy of a body without the fields that are null or `undefined`. */
export function withoutNulls<T extends object>(fields: T): WithoutNulls<T> {
  const kept: { [field: string]: unknown } = {};
  for (const field in fields) if (fields[field] !== null && fields[field] !== undefined) kept[field] = fields[field];
  return kept as WithoutNulls<T>; // as above
}
