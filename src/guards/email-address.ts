import type { GuardText } from "./guard-text.ts";
import type { Span } from "./spans.ts";

/** The longest local part and the longest domain (RFC 5321, 4.5.3.1), in characters. */
const MAX_LOCAL = 64;
const MAX_DOMAIN = 255;
const sign = /@|[([{]at[)\]}]/g;
const localEnd = /[a-z0-9_](?:[a-z0-9._%+'&~-]*[a-z0-9_+-])?$/;
const dot = "(?:\\.|[(\\[{]dot[)\\]}])";
const domainStart = new RegExp(
  `^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?${dot})+(?:xn--[a-z0-9-]{2,59}|[a-z]{2,24})(?![a-z0-9-])`,
);
/** Endings of file names, such as `icon@2x.png` has. */
const fileEnding =
  /\.(?:png|jpe?g|gif|svg|webp|avif|ico|bmp|css|s?css|js|mjs|ts|tsx|json|html?|md|txt|pdf|zip|tgz|gz)$/;
/** A package with its version: `react@18.2.0-beta.next`. */
const version = /^v?\d+\.\d/;

/**
 * E-mail addresses: a local part, `@` or `[at]`, and a domain whose last label is of letters. Not the user of a URL
 * (`ssh://deploy@host.example`), of a Git remote (`git@host:path`), a package with its version or a file's name.
 */
export function findEmailAddresses({ text }: GuardText): Span[] {
  const found: Span[] = [];
  for (const { 0: at, index } of text.matchAll(sign)) {
    const local = localEnd.exec(text.slice(Math.max(0, index - MAX_LOCAL), index))?.[0];
    const after = index + at.length;
    const domain = domainStart.exec(text.slice(after, after + MAX_DOMAIN))?.[0];
    if (local === undefined || domain === undefined) continue;
    const start = index - local.length;
    const end = after + domain.length;
    if (local.includes("..") || version.test(domain) || fileEnding.test(domain)) continue;
    const before = text.slice(Math.max(0, start - MAX_LOCAL), start);
    const isOfUrl = /:\/\/[^\s/@]*$/.test(before);
    const isOfRemote = /^(?:git|hg|svn)$/.test(local) && /^:[\w~./-]/.test(text.slice(end, end + 2));
    if (!isOfUrl && !isOfRemote) found.push({ start, end });
  }
  return found;
}
