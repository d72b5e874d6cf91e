import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect } from "chai";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const MOST = 4_096;
/** Connections that are opened at once: fewer than wait at a listening socket. */
const GROUP = 128;

describe("connections on which no call was admitted", () => {
  let platform: TestPlatform;
  const sockets: Socket[] = [];
  before(async () => {
    platform = await startPlatform({ workers: false });
  });
  after(async () => {
    for (const socket of sockets) socket.destroy();
    await platform.close();
  });

  const open = async (): Promise<Socket> => {
    const { hostname, port } = new URL(platform.url);
    const socket = connect(Number(port), hostname).setEncoding("utf8");
    sockets.push(socket);
    socket.on("error", () => undefined); // a closed one may be reset
    await once(socket, "connect");
    return socket;
  };
  const openSilent = async (count: number) => {
    const opened: Socket[] = [];
    while (opened.length < count) {
      const size = Math.min(GROUP, count - opened.length);
      opened.push(...(await Promise.all(Array.from({ length: size }, open))));
    }
    for (const socket of opened) socket.resume();
    return opened;
  };
  const statusOf = async (socket: Socket, path: string, key = "") => {
    const head = `GET ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${key}\r\n\r\n`;
    socket.write(head);
    const [answer] = await once(socket, "data");
    return Number(String(answer).split(" ")[1]);
  };

  it("are bounded in number: beyond the bound, only the one that has been silent the longest is closed", async () => {
    const admitted = await open();
    expect(await statusOf(admitted, "/jobs", platform.keys.member)).to.equal(200);
    const [first, refused, probe] = [await open(), await open(), await open()];
    const [second] = await openSilent(1);
    expect(await statusOf(refused, "/jobs", "sk_unknown")).to.equal(401);
    expect(await statusOf(probe, "/healthz")).to.equal(200);
    const closed = Promise.all([first, second].map((socket) => once(socket?.resume() as Socket, "close")));
    const others = await openSilent(MOST - 2);
    await closed;
    expect(others.filter(({ closed }) => closed)).to.have.length(0);
    expect(await statusOf(probe, "/healthz")).to.equal(200);
    expect(await statusOf(refused, "/jobs", "sk_unknown")).to.equal(401);
    expect(await statusOf(admitted, "/jobs", platform.keys.member)).to.equal(200);
  });
});
