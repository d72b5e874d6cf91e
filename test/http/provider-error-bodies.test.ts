import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const bodyOf = (message: string) => Buffer.from(JSON.stringify({ error: { message, type: "invalid_request_error" } }));

describe("the error body of a streamed call to a provider", () => {
  let test: TestPlatform;
  let client: ApiClient;
  let answer: (response: ServerResponse) => void;
  const upstream = createServer((request, response) => {
    request.resume();
    request.on("end", () => {
      response.writeHead(400, { "content-type": "application/json" });
      answer(response);
    });
  });
  before(async () => {
    upstream.listen(0, "127.0.0.1");
    await once(upstream, "listening");
    const { port } = upstream.address() as AddressInfo; // it listens on TCP
    test = await startPlatform({
      workers: false,
      env: {
        OPENAI_API_KEY: "sk-platform-openai",
        OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1`,
        PROVIDER_FIRST_BYTE_TIMEOUT_MS: "300",
      },
    });
    client = makeClient({ url: test.url, key: test.keys.member });
  });
  after(async () => {
    await test.close();
    upstream.closeAllConnections();
    upstream.close();
  });

  const refusal = async () => {
    const messages = [{ role: "user", content: "Hello." }];
    const { status, body } = await client.post("/ai/chat", { model: "gpt-5.4-nano", stream: true, messages });
    return { status, ...(body as { error: { code: string; message: string } }).error };
  };

  it("is read whole when a character comes in two chunks", async () => {
    const message = "Das Bild ist zu groß.";
    const body = bodyOf(message);
    const inTheMiddle = body.indexOf("ß") + 1;
    answer = (response) => {
      response.write(body.subarray(0, inTheMiddle));
      setTimeout(() => response.end(body.subarray(inTheMiddle)), 50);
    };
    const refused = await refusal();
    expect(refused).to.deep.include({ status: 400, code: "provider_rejected" });
    expect(refused.message).to.include(message);
  });

  it("counts as it is when it never ends", async () => {
    let hasLeft: Promise<unknown> = Promise.resolve();
    answer = (response) => {
      response.write(bodyOf("No."));
      const dripping = setInterval(() => response.write(" "), 20);
      hasLeft = once(response, "close").then(() => clearInterval(dripping));
    };
    const refused = await refusal();
    expect(refused).to.deep.include({ status: 400, code: "provider_rejected" });
    expect(refused.message).to.include("No.");
    await hasLeft;
  });
});
