import { z } from "zod";
import {
  acceptedEventSchema,
  eventBodySchema,
  eventNameSchema,
  eventSourceBodySchema,
  eventSourceViewSchema,
  newEventSourceSchema,
  triggerBodySchema,
  triggerReplacementSchema,
  triggerViewSchema,
} from "../../src/automation/event-schemas.ts";
import { idSchema } from "../../src/lib/ids.ts";
import { listOf, pageQuery } from "../list-query.ts";
import { admitCall } from "../middleware/rate-limit.ts";
import { reserveJob } from "../prefer.ts";
import { declareRoutes } from "../route.ts";
import { named } from "../schema-names.ts";
import { firingList } from "./schedules.ts";

const triggerParams = z.object({ id: idSchema("trigger") });
const sourceParams = z.object({ id: idSchema("eventSource") });
const trigger = named("Trigger", triggerViewSchema);
const accepted = named("AcceptedEvent", acceptedEventSchema);
const source = named("EventSource", eventSourceViewSchema);
const example = {
  event: "ticket.opened",
  when: "event.data.priority == 'high'",
  target: { workflowId: "wf_01M80BTCKBSKNHEZVJ0V2BDPKV" },
};
const triggerErrors = ["not_found", "quota_exceeded", "wrong_state", "insufficient_scope"] as const;

const group = { tags: ["Schedules and events"], bodyLimit: "settings", isForAllCollections: true } as const;
const routes = declareRoutes({ auth: "member", ...group });
const adminRoutes = declareRoutes({ auth: "admin", ...group });

export const eventRoutes = [
  routes.post("/events/:name", {
    summary: "Tell that something happened",
    description:
      "Starts what its triggers say, and wakes the runs that wait for it, by a job of its own. With an `id` of yours it is taken " +
      "once in 24 hours; a repeat is answered with the first one's job.",
    params: z.object({ name: eventNameSchema }),
    body: named("EventRequest", eventBodySchema),
    keepsDigits: true,
    example: { id: "ticket-4711", data: { priority: "high", text: "The pump is loud." } },
    responses: { 202: { description: "The event is handed out", body: accepted } },
    errors: ["too_many_concurrent", "compliance_blocked"],
    async result(input) {
      const { params, body, caller, platform } = input;
      const reserved = await reserveJob(input);
      const jobId = "job" in reserved ? reserved.job._id : reserved.jobId;
      const { tenantId, subject: startedBy, keyId } = caller;
      const { id: senderId, data } = body;
      return platform.automation.events.accept({
        tenantId,
        name: params.name,
        data,
        senderId,
        jobId,
        startedBy,
        keyId,
      });
    },
  }),
  routes.post("/triggers", {
    summary: "Start something whenever an event comes",
    description:
      "It is started once for each event, with the rights of the key that made or last replaced the trigger, and no more when that " +
      "key ends.",
    body: named("TriggerRequest", triggerBodySchema),
    example,
    responses: { 201: { description: "The trigger", body: trigger } },
    errors: triggerErrors,
    result: ({ body, caller, platform }) => platform.automation.triggers.create(caller, body),
  }),
  routes.get("/triggers", {
    summary: "Triggers of the tenant, newest first",
    query: pageQuery("trigger"),
    responses: { 200: { description: "A page of triggers", body: listOf(trigger) } },
    result: ({ query, caller, platform }) => platform.automation.triggers.list(caller.tenantId, query),
  }),
  routes.get("/triggers/:id", {
    summary: "One trigger",
    params: triggerParams,
    responses: { 200: { description: "The trigger", body: trigger } },
    result: ({ params: { id }, caller, platform }) => platform.automation.triggers.get(caller.tenantId, id),
  }),
  routes.put("/triggers/:id", {
    summary: "Replace a trigger by its next version",
    description: "Members replace their own triggers, admins those of others too.",
    params: triggerParams,
    body: named("TriggerReplacement", triggerReplacementSchema),
    example,
    responses: { 200: { description: "The trigger", body: trigger } },
    errors: [...triggerErrors, "insufficient_role"],
    result: ({ params: { id }, body, caller, platform }) => platform.automation.triggers.replace(caller, id, body),
  }),
  routes.delete("/triggers/:id", {
    summary: "Delete a trigger",
    description: "Members delete their own triggers, admins those of others too.",
    params: triggerParams,
    responses: { 204: { description: "It was deleted" } },
    errors: ["insufficient_role"],
    result: ({ params: { id }, caller, platform }) => platform.automation.triggers.remove(caller, id),
  }),
  routes.get("/triggers/:id/firings", {
    summary: "What a trigger has started, newest first",
    description:
      "Kept for 30 days, of a tenant the newest 100,000. Events of which its condition was not true are not listed.",
    params: triggerParams,
    query: pageQuery("firing"),
    responses: { 200: { description: "A page of firings", body: firingList } },
    result: ({ params: { id }, query, caller, platform }) =>
      platform.automation.triggers.firings(caller.tenantId, id, query),
  }),
  adminRoutes.post("/event-sources", {
    summary: "Let a server elsewhere post events, signed with a secret",
    description:
      "It posts JSON to `path` without a key of ours. Requests are verified as Standard Webhooks, GitHub or Slack sign them; a signed " +
      "time is refused when it is five minutes away. The secret is shown here only.",
    body: named("EventSourceRequest", eventSourceBodySchema),
    hasSecretReply: true,
    example: { name: "Our repository", kind: "github", event: "repository" },
    responses: { 201: { description: "The source", body: named("NewEventSource", newEventSourceSchema) } },
    errors: ["quota_exceeded", "provider_key_unreadable"],
    result: ({ body, caller, platform }) => platform.automation.eventSources.create(caller, body),
  }),
  adminRoutes.get("/event-sources", {
    summary: "Sources of events, newest first",
    query: pageQuery("eventSource"),
    responses: { 200: { description: "A page of sources", body: listOf(source) } },
    result: ({ query, caller, platform }) => platform.automation.eventSources.list(caller.tenantId, query),
  }),
  adminRoutes.delete("/event-sources/:id", {
    summary: "Delete a source of events",
    description: "Its requests are refused within 5 seconds.",
    params: sourceParams,
    responses: { 204: { description: "It was deleted" } },
    result: ({ params: { id }, caller, platform }) => platform.automation.eventSources.remove(caller.tenantId, id),
  }),
  routes.post("/event-sources/:id/events", {
    auth: "public",
    isForAllCollections: false,
    summary: "Where a source posts its events",
    description:
      "The signature is that of the source's kind. An event is taken once in 24 hours; a repeat is answered as the first one, with " +
      "`duplicate`. Slack's `url_verification` is answered with its `challenge`.",
    params: sourceParams,
    body: z.unknown(),
    documentedBody: z.unknown().describe("JSON as the source sends it"),
    keepsDigits: true,
    headers: {
      "webhook-id": "With `webhook-timestamp` and `webhook-signature`: of Standard Webhooks",
      "x-hub-signature-256": "Of GitHub",
      "x-slack-signature": "With `x-slack-request-timestamp`: of Slack",
    },
    responses: {
      200: { description: "Slack's challenge", body: z.object({ challenge: z.string() }) },
      202: { description: "The event is handed out", body: accepted },
    },
    errors: ["invalid_signature", "too_many_concurrent", "provider_key_unreadable", "compliance_blocked"],
    async handler({ params: { id }, body, bytes = Buffer.alloc(0), header, caller, platform }) {
      const { eventSources, events } = platform.automation;
      const { source: from, id: senderId, type } = await eventSources.verify(id, { header, bytes, body });
      const { tenantId, event: name, _id: sourceId } = from;
      const leave = await admitCall(platform.tenancy.limits, { ...caller, tenantId });
      try {
        const { type: kind, challenge } = Object(body);
        if (from.kind === "slack" && kind === "url_verification")
          return { status: 200, body: { challenge: String(challenge) } };
        const startedBy = `source:${from.name}`;
        return {
          status: 202,
          body: await events.accept({ tenantId, name, data: body, senderId, type, sourceId, startedBy }),
        };
      } finally {
        leave();
      }
    },
  }),
];
