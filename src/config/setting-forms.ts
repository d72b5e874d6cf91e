import { z } from "zod";

/** One setting: its environment variable is the key, `about` is its line in the table of settings. */
export const setting = <S extends z.ZodType>(schema: S, about: string, shown?: string) => ({ schema, about, shown });

/** The forms of settings. Each one says in words what a value must be. */
export const flag = z.enum(["true", "false"], { error: "must be true or false" }).transform((text) => text === "true");
/** Several values by commas. */
export const list = z.string().transform((text) =>
  text
    .trim()
    .split(/\s*,\s*/)
    .filter((part) => part !== ""),
);
/** As OpenTelemetry writes headers: the values may be percent-encoded. */
export const headers = z
  .string()
  .regex(/^[^=,]+=[^,]*(,[^=,]+=[^,]*)*$/, "must be name=value, several by commas")
  .transform((text) => Object.fromEntries(new URLSearchParams(text.replaceAll("+", "%2B").replaceAll(",", "&"))));
/** A whole number within bounds, both included. */
export const count = (from: number, to: number) => {
  const error = `must be a whole number from ${from} to ${to}`;
  return z.coerce.number({ error }).int(error).min(from, error).max(to, error);
};
/** A number above 0. */
export const part = (most: number) => {
  const error = `must be a number above 0 and at most ${most}`;
  return z.coerce.number({ error }).positive(error).max(most, error);
};
const FRACTION = "must be a number from 0 to 1";
export const fraction = z.coerce.number({ error: FRACTION }).min(0, FRACTION).max(1, FRACTION);
export const url = z.url({ protocol: /^https?$/, error: "must be an http or https URL" });
const logLevels = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export const logLevel = z.enum(logLevels, { error: `must be one of ${logLevels.join(", ")}` });
/** An optional text of this form. */
export const textAs = (form: RegExp, error: string) => z.string().regex(form, error).optional();
