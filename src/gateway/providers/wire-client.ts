import type { IncomingHttpHeaders } from "node:http";
import { StringDecoder } from "node:string_decoder";
import { isCostlyJson } from "../../lib/bounded-json.ts";
import { AppError } from "../../lib/errors.ts";
import {
  type Connection,
  MAX_ERROR_BYTES,
  makeTransport,
  type TransportCall,
  type TransportResponse,
  type TransportStream,
} from "../resilience/transport.ts";
import { type AnswerReader, readEventStream } from "./event-stream.ts";
import { parsePartialJson } from "./partial-json.ts";
import type { CallContext, RawRequest, Served, StreamPart, ToHeaders } from "./provider.ts";
import { fromWireError, hideKey, readAnswer, WireRefusal, withoutKey } from "./wire-errors.ts";

/** An error body of a stream that still comes after this time counts as it is then, in ms; `firstByteMs` where less. */
const MAX_ERROR_MS = 10_000;

/** How the responses of an endpoint are read. */
type ResponseReader<T> = {
  /** @throws AppError `provider_failed` for a body that is not such a response. */
  read(body: string): T;
  /** What a body that broke off or does not fit reports and says; undefined when it is no such response at all. */
  measure(begun: unknown): Served | undefined;
  /** A model writes it, and not a byte comes before it is done. */
  isSlow?: boolean;
};

/** Charges what was served of a response that broke off, or was given up. */
function chargeBy(measure: ResponseReader<unknown>["measure"], { onCharged }: CallContext) {
  return (begun: string, isGivenUp: boolean) => {
    const served = measure(parsePartialJson(begun));
    if (served !== undefined || isGivenUp) onCharged?.(served ?? {});
  };
}

/** Large answers have turns where they come from a server of a tenant's own, which may mean harm. @throws AppError `provider_failed`. */
function rejectCostly(body: string, { enterLarge }: Pick<Connection, "enterLarge">): void {
  if (enterLarge === undefined || !isCostlyJson(body)) return;
  throw new AppError(
    "provider_failed",
    "The provider's answer has more fields, objects or lists than any answer of a model.",
  );
}

/** POSTs JSON to one provider's API. What is not 2xx is thrown as an AppError that never holds the key. */
export function makeWireClient(
  options: Connection & {
    toHeaders: ToHeaders;
    /** The key of calls that bring none. */
    apiKey?: string | undefined;
  },
) {
  const transport = makeTransport(options);
  const errorMs = Math.min(MAX_ERROR_MS, options.timeouts.firstByteMs);
  const toCall = (path: string, body: string, context: CallContext): TransportCall => ({
    path,
    body,
    signal: context.signal,
    maxBytes: context.maxAnswerBytes,
    headers: { "content-type": "application/json", ...options.toHeaders(context.apiKey ?? options.apiKey) },
  });
  const toRawCall = ({ path, body, headers }: RawRequest, context: CallContext): TransportCall => {
    const call = toCall(path, body, context);
    return { ...call, headers: { ...call.headers, ...headers } };
  };
  const keyOf = (context: CallContext) => context.apiKey ?? options.apiKey;
  /** The error of a response, without the key where a server quotes it. */
  const toError = ({ status, headers, body }: TransportResponse, context: CallContext) => {
    const apiKey = keyOf(context);
    const error = fromWireError(status, headers, hideKey(body, apiKey));
    return withoutKey(error, apiKey) as AppError; // as it was
  };
  const toRefusal = (response: TransportResponse, context: CallContext) => {
    const error = toError(response, context);
    const body = hideKey(response.body, keyOf(context));
    // What concerns our key or account is not the sender's business.
    if (error.reason !== "access_refused") error.cause = new WireRefusal(response.status, body);
    return error;
  };
  return {
    /** The whole response. */
    async send<T>(path: string, body: string, context: CallContext, reader: ResponseReader<T>): Promise<T> {
      const charge = chargeBy(reader.measure, context);
      const call = { ...toCall(path, body, context), isWhole: reader.isSlow === true, onBroken: charge };
      const response = await transport.send(call);
      if (response.status < 200 || response.status > 299) throw toError(response, context);
      rejectCostly(response.body, options);
      try {
        return readAnswer(reader.read, response.body, response.headers);
      } catch (error) {
        charge(response.body, false);
        throw withoutKey(error, keyOf(context));
      }
    },
    /** The parts of a streamed response. */
    stream(path: string, body: string, context: CallContext, reader: AnswerReader): AsyncGenerator<StreamPart[]> {
      let headers: IncomingHttpHeaders = {};
      const open = async (onGivenUp: () => void) => {
        const onBroken = (_begun: string, isGivenUp: boolean) => void (isGivenUp && onGivenUp());
        const response = await transport.open({ ...toCall(path, body, context), onBroken });
        headers = response.headers;
        if (response.status >= 200 && response.status < 300) return response;
        throw toError({ ...response, body: await readError(response.chunks, errorMs) }, context);
      };
      const readWhole = (whole: string) => {
        rejectCostly(whole, options);
        return readAnswer(reader.readWhole, whole, headers);
      };
      return readEventStream(open, { ...reader, readWhole }, { ...context, apiKey: keyOf(context) });
    },
    /** The whole response to a request that goes as it came. A refusal is the cause of its error. */
    async sendRaw(
      request: RawRequest,
      context: CallContext,
      measure: ResponseReader<unknown>["measure"],
    ): Promise<string> {
      const onBroken = chargeBy(measure, context);
      const response = await transport.send({ ...toRawCall(request, context), isWhole: true, onBroken });
      if (response.status < 200 || response.status > 299) throw toRefusal(response, context);
      return response.body;
    },
    /** The same as a stream; `onGivenUp` as `readEventStream` needs it. */
    async openRaw(request: RawRequest, context: CallContext, onGivenUp: () => void): Promise<TransportStream> {
      const onBroken = (_begun: string, isGivenUp: boolean) => void (isGivenUp && onGivenUp());
      const response = await transport.open({ ...toRawCall(request, context), onBroken });
      if (response.status >= 200 && response.status < 300) return response;
      throw toRefusal({ ...response, body: await readError(response.chunks, errorMs) }, context);
    },
    close: transport.close,
  };
}

/** What comes of an error body within its limits; a silence in it is the transport's matter. */
async function readError(chunks: AsyncIterable<Buffer>, limitMs: number): Promise<string> {
  const until = performance.now() + limitMs;
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    parts.push(chunk);
    bytes += chunk.length;
    if (bytes >= MAX_ERROR_BYTES || performance.now() > until) break;
  }
  // The decoder leaves out a character that the limit cut.
  return new StringDecoder("utf8").write(Buffer.concat(parts).subarray(0, MAX_ERROR_BYTES));
}
