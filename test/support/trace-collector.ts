import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export type CollectedSpan = {
  service: string;
  traceId: string;
  spanId: string;
  parentSpanId: string;
  name: string;
  kind: number;
  isError: boolean;
  attributes: Record<string, unknown>;
};

export type TraceCollector = {
  /** What `OTEL_EXPORTER_OTLP_ENDPOINT` is set to. */
  url: string;
  spans: CollectedSpan[];
  /** Everything that was sent, as it came, headers included. */
  text(): string;
  close(): Promise<void>;
};

type Attribute = { key: string; value: Record<string, unknown> };
type WireSpan = Omit<CollectedSpan, "service" | "attributes" | "isError"> & {
  attributes: Attribute[];
  status: { code?: number };
};
type WireTraces = {
  resourceSpans: { resource: { attributes: Attribute[] }; scopeSpans: { spans: WireSpan[] }[] }[];
};

const toObject = (attributes: Attribute[]) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

/** A collector of traces that takes OTLP over HTTP in JSON (https://opentelemetry.io/docs/specs/otlp/#otlphttp). */
export async function startTraceCollector(): Promise<TraceCollector> {
  const spans: CollectedSpan[] = [];
  const texts: string[] = [];
  const server = createServer(async (request, response) => {
    const text = (await request.toArray()).map(String).join("");
    texts.push(JSON.stringify(request.headers), text);
    const { resourceSpans } = JSON.parse(text) as WireTraces; // what the specification says
    for (const { resource, scopeSpans } of resourceSpans) {
      const service = String(toObject(resource.attributes)["service.name"]);
      for (const { attributes, status, ...span } of scopeSpans.flatMap((scope) => scope.spans)) {
        spans.push({ ...span, service, attributes: toObject(attributes), isError: status.code === 2 });
      }
    }
    response.writeHead(request.url === "/v1/traces" ? 200 : 404, { "content-type": "application/json" }).end("{}");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // a TCP server that listens has one
  return {
    url: `http://127.0.0.1:${port}`,
    spans,
    text: () => texts.join("\n"),
    close: async () => {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
