import { AppError } from "../../errors.ts";

/** The same response, whose body fails when it is longer than `maxBytes`: its readers keep all of it in memory. */
export function boundBody(response: Response, maxBytes: number): Response {
  const { body, status, statusText, headers } = response;
  if (!body) return response;
  let seen = 0;
  const bounded = body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(part, controller) {
        seen += part.byteLength;
        if (seen <= maxBytes) controller.enqueue(part);
        else controller.error(new AppError("request_too_large", `The answer is longer than ${maxBytes} bytes.`));
      },
    }),
  );
  return new Response(bounded, { status, statusText, headers });
}
