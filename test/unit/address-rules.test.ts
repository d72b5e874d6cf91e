import { expect } from "chai";
import { checkUrl, isPublicAddress } from "../../src/net/address-rules.ts";
import { rejectedUrls } from "../support/refused-urls.ts";

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
  "http://[2001:0:808:808::f7f7:f7f7]/",
  "http://[2a00::5efe:808:808]/",
  "http://[2a00::200:5efe:808:808]/",
  "http://[2a00::1:5efe:7f00:1]/",
  "http://localhost.example.com/",
  "http://127.0.0.1.example.com/",
  "http://172.32.0.1/",
  "http://100.128.0.1/",
];

describe("address rules", () => {
  it("has a table of at least 60 refused spellings", () => {
    expect(new Set(rejectedUrls).size).to.be.at.least(60);
  });

  for (const url of rejectedUrls) {
    it(`refuses ${url || "an empty URL"}`, () => {
      expect(checkUrl(url)).to.have.property("refused").that.is.a("string");
    });
  }

  for (const url of takenUrls) {
    it(`takes ${url}`, () => {
      expect(checkUrl(url)).to.deep.equal({ url: new URL(url), isAllowed: false });
    });
  }

  it("lets an allowed origin through, and only that origin", () => {
    const allowed = ["http://127.0.0.1:8080"];
    const url = "http://127.0.0.1:8080/a";
    expect(checkUrl(url, allowed)).to.deep.equal({ url: new URL(url), isAllowed: true });
    expect(checkUrl("http://127.0.0.1:8081/a", allowed)).to.have.property("refused");
    expect(checkUrl("https://127.0.0.1:8080/a", allowed)).to.have.property("refused");
    expect(checkUrl("http://user@127.0.0.1:8080/a", allowed)).to.have.property("refused");
  });

  it("does not take other texts for addresses", () => {
    for (const text of ["", "localhost", "example.com", "1.2.3.4.5", "fe80::1%eth0", "::g"]) {
      expect(isPublicAddress(text), text).to.equal(false);
    }
  });
});
