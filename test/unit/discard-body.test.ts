import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { finished } from "node:stream/promises";
import { setImmediate as turn } from "node:timers/promises";
import { expect } from "chai";
import { makeDiscard } from "../../api/middleware/errors.ts";
import { pollUntil } from "../support/poll-until.ts";

const CHUNK_BYTES = 64 << 10;

/** A body of `chunks` chunks, which counts those that are taken. */
function makeBody(chunks: number) {
  let taken = 0;
  const body = new Readable({
    highWaterMark: CHUNK_BYTES,
    read() {
      this.push(taken < chunks ? Buffer.alloc(CHUNK_BYTES) : null);
      taken++;
    },
  });
  return { request: body as IncomingMessage, taken: () => taken }; // as far as it is used
}

describe("the rest of a refused body", () => {
  it("is not taken at once where it is large", async () => {
    const discard = makeDiscard({ turnMs: 60_000 });
    const { request, taken } = makeBody(200);
    discard(request);
    for (let n = 0; n < 1_000; n++) await turn();
    expect(taken()).to.be.within(4, 10);
    request.destroy();
  });

  it("is taken to its end, turn by turn, of several bodies", async () => {
    const discard = makeDiscard({ turnMs: 1 });
    const bodies = Array.from({ length: 20 }, () => makeBody(30));
    for (const { request } of bodies) discard(request);
    await Promise.all(bodies.map(({ request }) => finished(request)));
    expect(bodies.map(({ taken }) => taken())).to.deep.equal(bodies.map(() => 31));
  });

  it("is taken in four chunks a turn, of however many bodies", async () => {
    const bodies = Array.from({ length: 20 }, () => makeBody(200));
    const sum = () => bodies.reduce((all, { taken }) => all + taken(), 0);
    const discard = makeDiscard({ turnMs: 300 });
    for (const { request } of bodies) discard(request);
    for (let n = 0; n < 100; n++) await turn();
    const before = sum();
    await pollUntil(async () => sum() > before, { what: "a turn" });
    expect(sum() - before, "a stream reads one ahead").to.be.at.most(2 * 4);
    for (const { request } of bodies) request.destroy();
  });

  it("is taken at once where it is small", async () => {
    const discard = makeDiscard({ turnMs: 60_000 });
    const { request, taken } = makeBody(2);
    discard(request);
    await finished(request);
    expect(taken()).to.equal(3);
  });
});
