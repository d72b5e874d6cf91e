import ipaddr from "ipaddr.js";

/** Public in form, but the host's own agent answers there: Azure's wire server. */
const hostServices = new Set(["168.63.129.16"]);

/** Names that never lead to the public network: RFC 6761 (localhost), RFC 6762 (local), RFC 8375, and cloud-internal ones. */
const privateSuffixes = ["localhost", "local", "internal", "home.arpa", "localdomain"];

/** How the refusal of an address ends. It names a documented setting, and nothing of this network. */
export const HOW_TO_ALLOW = "The operator can allow its origin by FETCH_ALLOW_ORIGINS.";

/** Why a URL may not be fetched; the text is fit for the caller to read. */
export type Refusal = { refused: string };

/**
 * Whether an IP address, in any usual spelling, is public unicast. IPv4 inside IPv6 (mapped, NAT64 of RFC 6052, 6to4 of
 * RFC 3056, Teredo of RFC 4380, ISATAP of RFC 5214) is unfolded, and every address inside must be public too.
 */
export function isPublicAddress(text: string): boolean {
  const bare = text.replace(/^\[|\]$/g, "");
  if (!ipaddr.isValid(bare)) return false;
  const address = ipaddr.parse(bare);
  return address instanceof ipaddr.IPv4 ? isPublicV4(address) : isPublicV6(address);
}

function isPublicV4(address: ipaddr.IPv4): boolean {
  return address.range() === "unicast" && !hostServices.has(address.toString());
}

function isPublicV6(address: ipaddr.IPv6): boolean {
  const { parts } = address;
  const v4At = (index: number, mask = 0) => fromParts((parts[index] ?? 0) ^ mask, (parts[index + 1] ?? 0) ^ mask);
  switch (address.range()) {
    case "ipv4Mapped":
      return isPublicV4(v4At(6));
    case "rfc6052": // 64:ff9b:1::/48 is for local use (RFC 8215), where each network places the address as it likes
      return parts[2] === 0 && isPublicV4(v4At(6));
    case "6to4":
      return isPublicV4(v4At(1));
    case "teredo": // the server's address in the clear, the client's inverted
      return isPublicV4(v4At(2)) && isPublicV4(v4At(6, 0xffff));
    case "unicast": {
      const isGlobal = ((parts[0] ?? 0) & 0xe000) === 0x2000; // 2000::/3, all that IANA hands out
      const isIsatap = parts[5] === 0x5efe && (parts[4] === 0 || parts[4] === 0x200);
      return isGlobal && (!isIsatap || isPublicV4(v4At(6)));
    }
    default:
      return false;
  }
}

function fromParts(high: number, low: number): ipaddr.IPv4 {
  return new ipaddr.IPv4([high >> 8, high & 0xff, low >> 8, low & 0xff]);
}

/**
 * Decides by its text alone whether a URL may be fetched: http or https, no credentials, and a host that is not known to
 * be private. A name still has to be resolved and each of its addresses asked of `isPublicAddress`.
 * Origins in `allowOrigins` (as `http://10.0.0.5:8080`) are let through whatever their address.
 */
export function checkUrl(
  text: string,
  allowOrigins: readonly string[] = [],
): { url: URL; isAllowed: boolean } | Refusal {
  if (!URL.canParse(text)) return { refused: "It is not an absolute URL." };
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:") return { refused: "Only http and https are fetched." };
  if (url.username !== "" || url.password !== "") return { refused: "A URL with credentials in it is not fetched." };
  if (allowOrigins.includes(url.origin)) return { url, isAllowed: true };
  const host = url.hostname.toLowerCase().replace(/\.$/, "");
  const isLiteral = host.startsWith("[") || ipaddr.isValid(host);
  if (isLiteral && !isPublicAddress(host)) return { refused: `Its address is not public. ${HOW_TO_ALLOW}` };
  if (!isLiteral && isPrivateName(host)) return { refused: `Its host is not public. ${HOW_TO_ALLOW}` };
  return { url, isAllowed: false };
}

/** A host with a single label, or below a suffix that is never public. */
function isPrivateName(host: string): boolean {
  return !host.includes(".") || privateSuffixes.some((suffix) => host === suffix || host.endsWith(`.${suffix}`));
}
