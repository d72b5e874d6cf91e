import { z } from "zod";
import { commonFields, stepKind } from "./step.ts";

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;

/** Calls an address. An attempt that is made again after a crash carries the same message id. */
export const webhook = stepKind({
  schema: z.strictObject({
    type: z.literal("webhook"),
    ...commonFields,
    url: z.string().min(1).max(8_192),
    method: z
      .string()
      .transform((text) => text.toUpperCase())
      .pipe(z.enum(methods)),
    body: z.record(z.string(), z.unknown()).optional(),
  }),
  summary: "url, method, body?",
  fields: ({ url, body }) => [
    { at: "url", value: url, kind: "url" },
    ...(body === undefined ? [] : [{ at: "body", value: body, kind: "value" as const }]),
  ],
  check({ url }, { deps, field }) {
    if (!url.includes("{{")) deps.egress.check(url, `${field}.url`);
  },
  attempts: 5, // receivers are unavailable more often than models
  stub({ step: { method }, deps, place }, { url, body }) {
    const address = String(url).trim();
    deps.egress.check(address, `${place.field}.url`);
    return { output: { status: 200, headers: {}, body: null }, call: { method, url: address, body } };
  },
  async run({ deps, run, step, place, fill, signal }) {
    const { url, body: filled } = await fill();
    const { tenantId, workflowId, caller } = run;
    const whose = { tenantId, workflowId, keyId: caller.keyId };
    const body = await deps.guards.take(whose, "toolInput", filled);
    const id = `${run._id}:${place.path}`;
    const delivery = {
      id,
      url: String(url).trim(),
      method: step.method,
      signal,
      ...(body === undefined ? {} : { body }),
    };
    return { output: await deps.guards.take(whose, "toolOutput", await deps.webhooks.deliver(tenantId, delivery)) };
  },
});
