import { once } from "node:events";
import type { AddressInfo, Server } from "node:net";
import { ConfigError } from "./errors.ts";

/** What the usual refusals of an address mean. */
const reasons: Record<string, string> = {
  EADDRINUSE: "another process listens there",
  EADDRNOTAVAIL: "this machine has no such address",
  EACCES: "this user may not listen there",
  ENOTFOUND: "no such host",
};

/** Listens at the address of settings (port 0: a free one); returns its URL. @throws ConfigError with the reason. */
export async function listen(
  server: Server,
  { host, port, setting }: { host: string; port: number; setting: string },
): Promise<string> {
  server.listen(port, host);
  await once(server, "listening").catch((error: NodeJS.ErrnoException) => {
    const reason = reasons[String(error.code)];
    if (reason === undefined) throw error;
    throw new ConfigError(`${setting}: ${host}:${port} cannot be used (${reason}).`);
  });
  const address = server.address() as AddressInfo; // a TCP server that listens has one
  return `http://${host.includes(":") ? `[${host}]` : host}:${address.port}`;
}
