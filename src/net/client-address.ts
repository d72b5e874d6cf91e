import ipaddr from "ipaddr.js";

type Address = ipaddr.IPv4 | ipaddr.IPv6;
type Hops = { remoteAddress: string | undefined; forwardedFor: string };

/** Whether a text is an IP address, or a range of them as `10.0.0.0/8`. */
export function isAddressOrRange(text: string): boolean {
  return ipaddr.isValidCIDR(text) || readAddress(text) !== undefined;
}

/**
 * Makes the function that finds the client of a request, for limits by address: the nearest hop that is not a trusted proxy.
 * Proxies append their caller's address to `X-Forwarded-For`, so that the list is read from its end, and only as far as
 * trusted proxies wrote it; earlier entries may be forged. A /64 network of IPv6 counts as one client, because it holds more
 * addresses than any limit could count. `trusted` are addresses and ranges.
 */
export function makeClientAddress(trusted: readonly string[]): (hops: Hops) => string {
  const ranges = trusted.map(readRange);
  const isTrusted = (address: Address) =>
    ranges.some(([network, bits]) => network.kind() === address.kind() && address.match(network, bits));
  return ({ remoteAddress = "", forwardedFor }) => {
    let client = readAddress(remoteAddress);
    if (ranges.length > 0) {
      const earlier = forwardedFor.split(",");
      while (client && isTrusted(client) && earlier.length > 0) {
        const before = readAddress(earlier.pop() ?? "");
        if (before === undefined) break;
        client = before;
      }
    }
    return client === undefined ? "unknown" : groupOf(client);
  };
}

function readRange(text: string): [Address, number] {
  if (ipaddr.isValidCIDR(text)) return ipaddr.parseCIDR(text);
  const address = ipaddr.process(text);
  return [address, address.kind() === "ipv4" ? 32 : 128];
}

/** An address as proxies write it, some of them with a port; IPv4 inside IPv6 is IPv4. */
function readAddress(text: string): Address | undefined {
  const bare = text
    .trim()
    .replace(/^\[([^\]]*)\](?::\d+)?$/, "$1")
    .replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, "$1");
  const isAddress = ipaddr.IPv4.isValidFourPartDecimal(bare) || ipaddr.IPv6.isValid(bare);
  return isAddress ? ipaddr.process(bare) : undefined;
}

function groupOf(address: Address): string {
  if (address instanceof ipaddr.IPv4) return address.toString();
  const network = address.parts.slice(0, 4).map((part) => part.toString(16));
  return `${network.join(":")}::/64`;
}
