import { expect } from "chai";
import { isAddressOrRange, makeClientAddress } from "../../src/net/client-address.ts";

describe("the address of a client", () => {
  const direct = makeClientAddress([]);
  const proxied = makeClientAddress(["10.0.0.0/8", "127.0.0.1", "2001:db8:ffff::/48"]);

  it("is that of the connection where no proxy is trusted", () => {
    expect(direct({ remoteAddress: "10.0.0.1", forwardedFor: "203.0.113.9" })).to.equal("10.0.0.1");
    expect(direct({ remoteAddress: undefined, forwardedFor: "203.0.113.9" })).to.equal("unknown");
  });

  for (const [forwardedFor, client, why] of [
    ["203.0.113.9", "203.0.113.9", "the one hop"],
    ["198.51.100.1, 203.0.113.9", "203.0.113.9", "what the client wrote itself"],
    ["203.0.113.9, 10.1.1.1,10.2.2.2", "203.0.113.9", "a chain of proxies"],
    ["203.0.113.9:4711", "203.0.113.9", "a port"],
    ["203.0.113.9, [2001:db8:ffff::7]:443", "203.0.113.9", "a proxy over IPv6"],
    ["::ffff:203.0.113.9", "203.0.113.9", "IPv4 inside IPv6"],
    ["10.3.3.3", "10.3.3.3", "proxies alone"],
    ["203.0.113.9, unknown", "10.0.0.1", "no address"],
    ["203.0.113.9, 0x7f.1", "10.0.0.1", "an odd spelling"],
    ["203.0.113.9,", "10.0.0.1", "nothing"],
    ["", "10.0.0.1", "no header"],
  ] as const) {
    it(`is the nearest hop that is not a trusted proxy: ${why}`, () => {
      expect(proxied({ remoteAddress: "::ffff:10.0.0.1", forwardedFor })).to.equal(client);
    });
  }

  it("is not taken from a header of an untrusted peer", () => {
    expect(proxied({ remoteAddress: "192.0.2.1", forwardedFor: "203.0.113.9" })).to.equal("192.0.2.1");
  });

  it("is the network of an IPv6 client", () => {
    const one = direct({ remoteAddress: "2001:db8:1:2:aaaa::1", forwardedFor: "" });
    expect(direct({ remoteAddress: "2001:db8:1:2:bbbb::2", forwardedFor: "" })).to.equal(one);
    expect(direct({ remoteAddress: "2001:db8:1:3::1", forwardedFor: "" })).not.to.equal(one);
  });

  it("is trusted by addresses and ranges only", () => {
    for (const text of ["10.0.0.0/8", "127.0.0.1", "::1", "fd00::/8"])
      expect(isAddressOrRange(text), text).to.equal(true);
    for (const text of ["", "proxy", "10.0.0.0/33", "*", "10"]) expect(isAddressOrRange(text), text).to.equal(false);
  });
});
