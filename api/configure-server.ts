import type { Server } from "node:http";
import type { Duplex } from "node:stream";

/** Times that bound what a slow or silent client can hold, in ms. */
const HEADERS_TIMEOUT_MS = 15_000;
const REQUEST_TIMEOUT_MS = 120_000;
const KEEP_ALIVE_TIMEOUT_MS = 65_000; // longer than the usual idle time of a load balancer, so that it closes first
const MAX_HEADERS = 100;

/**
 * Sets the limits of an HTTP server: time for the head and for the whole request (slow loris), head size, idle connections.
 * What is not HTTP gets a JSON response, and a body announced by `Expect: 100-continue` is only requested when it is wanted.
 */
export function configureServer(server: Server): void {
  server.headersTimeout = HEADERS_TIMEOUT_MS;
  server.requestTimeout = REQUEST_TIMEOUT_MS;
  server.keepAliveTimeout = KEEP_ALIVE_TIMEOUT_MS;
  server.maxHeadersCount = MAX_HEADERS;
  server.on("checkContinue", (request, response) => server.emit("request", request, response));
  server.on("clientError", answerClientError);
}

const clientErrors: Record<string, [status: string, code: string, message: string]> = {
  HPE_HEADER_OVERFLOW: ["431 Request Header Fields Too Large", "request_too_large", "The headers are too large."],
  ERR_HTTP_REQUEST_TIMEOUT: ["408 Request Timeout", "timeout", "The request did not arrive in time."],
};

function answerClientError(error: Error & { code?: string }, socket: Duplex): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const known = clientErrors[error.code ?? ""];
  const [status, code, message] = known ?? ["400 Bad Request", "invalid_request", "This is not a valid HTTP request."];
  const body = JSON.stringify({ error: { type: "invalid_request_error", code, message } });
  const head = `HTTP/1.1 ${status}\r\ncontent-type: application/json; charset=utf-8\r\nconnection: close\r\n`;
  socket.end(`${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}
