import { expect } from "chai";
import { checkUrl, isPublicAddress } from "../../src/net/address-rules.ts";

/** URLs whose text alone is enough to refuse them. */
const refusedUrls = [
  // loopback, in every spelling that a URL parser takes for an address
  "http://127.0.0.1/",
  "http://127.1/",
  "http://127.0.1/",
  "http://127.255.255.254/",
  "http://2130706433/",
  "http://017700000001/",
  "http://0x7f000001/",
  "http://0x7f.0.0.1/",
  "http://0177.0.0.1/",
  "http://0x7f.1/",
  "http://127.0.0.1./",
  "http://127.0.0.1:8080/admin",
  "http://①②⑦.⓪.⓪.①/",
  "http://%31%32%37.0.0.1/",
  "http://localhost/",
  "http://LOCALHOST/",
  "http://localhost./",
  "http://localhost:65535/",
  "http://api.localhost/",
  "http://a.b.localhost./",
  "http://localhost.localdomain/",
  "http://[::1]/",
  "http://[0:0:0:0:0:0:0:1]/",
  "http://[0000:0000::0001]/",
  // this host, and every IPv4 form inside IPv6
  "http://0.0.0.0/",
  "http://0/",
  "http://0.1.2.3/",
  "http://[::]/",
  "http://[::ffff:127.0.0.1]/",
  "http://[::ffff:7f00:1]/",
  "http://[::127.0.0.1]/",
  "http://[::ffff:0:127.0.0.1]/",
  "http://[::ffff:10.0.0.1]/",
  "http://[64:ff9b::127.0.0.1]/",
  "http://[64:ff9b::a9fe:a9fe]/",
  "http://[64:ff9b:1::8.8.8.8]/",
  "http://[2002:7f00:1::]/",
  "http://[2002:a9fe:a9fe::1]/",
  "http://[2002:c0a8:101::1]/",
  "http://[2001:0:808:808:0:0:80ff:fffe]/",
  "http://[2001:0:7f00:1:0:0:f7f7:f7f7]/",
  "http://[2607:f8b0::5efe:127.0.0.1]/",
  "http://[2607:f8b0::200:5efe:10.0.0.1]/",
  // private, link-local, shared and reserved ranges
  "http://10.0.0.1/",
  "http://10.255.255.255/",
  "http://012.0.0.1/",
  "http://172.16.0.1/",
  "http://172.31.255.255/",
  "http://192.168.0.1/",
  "http://192.168.1/",
  "http://169.254.169.254/latest/meta-data/",
  "http://2852039166/",
  "http://0xa9fea9fe/",
  "http://169.254.1.1/",
  "http://100.64.0.1/",
  "http://100.100.100.200/latest/meta-data/",
  "http://100.127.255.254/",
  "http://168.63.129.16/",
  "http://192.0.0.192/",
  "http://192.0.2.1/",
  "http://198.18.0.1/",
  "http://198.51.100.7/",
  "http://203.0.113.9/",
  "http://224.0.0.1/",
  "http://239.255.255.250/",
  "http://240.0.0.1/",
  "http://255.255.255.255/",
  "http://[fe80::1]/",
  "http://[fec0::1]/",
  "http://[fc00::1]/",
  "http://[fd00:ec2::254]/",
  "http://[ff02::1]/",
  "http://[100::1]/",
  "http://[2001:db8::1]/",
  "http://[3fff::1]/",
  // names that never lead outside
  "http://metadata/",
  "http://intranet/",
  "http://printer.local/",
  "http://metadata.google.internal/",
  "http://router.home.arpa/",
  // not http, or not plain
  "file:///etc/passwd",
  "ftp://example.com/a",
  "gopher://example.com/",
  "data:text/plain,hello",
  "javascript:alert(1)",
  "blob:https://example.com/1",
  "http://user@example.com/",
  "http://user:secret@example.com/",
  "http://example.com@127.0.0.1/",
  "//example.com/",
  "example.com",
  "",
  "http://",
  "http://exa mple.com/",
];

const takenUrls = [
  "http://example.com/",
  "https://example.com:8443/a/b?c#d",
  "http://example.com:22/",
  "http://8.8.8.8/",
  "http://134744072/",
  "http://[2607:f8b0:4005:80a::200e]/",
  "http://[::ffff:8.8.8.8]/",
  "http://[64:ff9b::8.8.8.8]/",
  "http://[2002:808:808::1]/",
  "http://localhost.example.com/",
  "http://127.0.0.1.example.com/",
  "http://172.32.0.1/",
  "http://100.128.0.1/",
];

describe("address rules", () => {
  it("has a table of at least 60 refused spellings", () => {
    expect(new Set(refusedUrls).size).to.be.at.least(60);
  });

  for (const url of refusedUrls) {
    it(`refuses ${url || "an empty URL"}`, () => {
      expect(checkUrl(url)).to.have.property("refused").that.is.a("string");
    });
  }

  for (const url of takenUrls) {
    it(`takes ${url}`, () => {
      expect(checkUrl(url)).to.have.property("isAllowed", false);
    });
  }

  it("lets an allowed origin through, and only that origin", () => {
    const allowed = ["http://127.0.0.1:8080"];
    expect(checkUrl("http://127.0.0.1:8080/a", allowed)).to.have.property("isAllowed", true);
    expect(checkUrl("http://127.0.0.1:8081/a", allowed)).to.have.property("refused");
    expect(checkUrl("https://127.0.0.1:8080/a", allowed)).to.have.property("refused");
    expect(checkUrl("http://user@127.0.0.1:8080/a", allowed)).to.have.property("refused");
  });

  it("does not take for an address what is none", () => {
    for (const text of ["", "localhost", "example.com", "1.2.3.4.5", "fe80::1%eth0", "::g"]) {
      expect(isPublicAddress(text), text).to.equal(false);
    }
  });
});
