import { isIPv6 } from "node:net";
import type { GuardText } from "./guard-text.ts";
import { findSpans, type Span } from "./spans.ts";

const octet = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
const four = new RegExp(`(?<![\\w.-])${octet}(?:(?:\\.|\\[\\.\\])${octet}){3}(?![\\w-]|\\.\\d)`, "g");
const six = /(?<![\w:.])[0-9a-f]{0,4}:[0-9a-f:]{1,39}(?:\d{1,3}(?:\.\d{1,3}){3})?(?![\w:]|\.\d)/g;
/** Numbers of other things that have four parts. */
const otherName =
  /(?:(?<![a-z])(?:v|ver|versions?|releases?|build|firmware|driver|sections?|chapters?|paragraphs?|clauses?|articles?|figure|oid|rev|revision|sdk|schema)|\u00a7)[ .:=#(]{0,3}$/;
/** Addresses that stand for no machine, for this one or for all: unspecified, loopback, masks and broadcast. */
const ofNobody = /^(?:0\.0\.0\.0|127\.\d+\.\d+\.\d+|255\.255\.\d+\.\d+|255\.0\.0\.0|::|::1)$/;
const NAME_REACH = 16;
const MIN_HEX = 4;

/** IP addresses, of version 4 and 6, private ones too; not those that stand for no machine, and not versions of four parts. */
export function findIpAddresses({ text }: GuardText): Span[] {
  return [...findSixes(text), ...findFours(text)];
}

function findFours(text: string): Span[] {
  return findSpans(text, four).filter(({ start, end }) => {
    const isOfNobody = ofNobody.test(text.slice(start, end).replace(/[[\]]/g, ""));
    return !isOfNobody && !otherName.test(text.slice(Math.max(0, start - NAME_REACH), start));
  });
}

function findSixes(text: string): Span[] {
  if (!text.includes(":")) return [];
  const found: Span[] = [];
  for (const { 0: taken, index } of text.matchAll(six)) {
    const address = taken.replace(/(?<!:):$/, ""); // a colon of the sentence
    const hex = address.replace(/[^0-9a-f]/g, "");
    if (hex.length < MIN_HEX || !/\d/.test(hex) || ofNobody.test(address) || !isIPv6(address)) continue;
    found.push({ start: index, end: index + address.length });
  }
  return found;
}
