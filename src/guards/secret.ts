import type { GuardText } from "./guard-text.ts";
import { findSpans, type Span } from "./spans.ts";

/** Forms of keys and tokens that name themselves. The text is folded, so that capitals do not count. */
const forms: readonly RegExp[] = [
  // OpenAI, Anthropic, Stripe, this platform and others after them
  /(?<![a-z0-9])[sr]k[-_](?:(?:proj|svcacct|admin|ant|live|test|or|lf)[-_])?[a-z0-9_-]{16,200}(?![a-z0-9_-])/g,
  // GitHub, GitLab, npm, PyPI, Hugging Face, Groq, DigitalOcean, Shopify, Linear, Postman, Databricks, Vault, Docker, Perplexity
  /(?<![a-z0-9])(?:gh[opusr]_|github_pat_|glpat-|npm_|pypi-|hf_|gsk_|do[op]_v1_|shp(?:at|ca|pa|ss)_|lin_api_|pmak-|dapi|hvs\.|dckr_pat_|pplx-|xai-|r8_|sgp_)[a-z0-9_-]{20,255}(?![a-z0-9_-])/g,
  /(?<![a-z0-9])xox[abeoprs]-[a-z0-9-]{16,250}/g, // Slack
  /(?<![a-z0-9])xapp-\d-[a-z0-9-]{16,250}/g,
  /(?<![a-z0-9])(?:akia|asia)[a-z2-7]{16}(?![a-z0-9])/g, // AWS
  /(?<![a-z0-9])aiza[a-z0-9_-]{35}(?![a-z0-9_-])/g, // Google
  /(?<![a-z0-9])ya29\.[a-z0-9_-]{20,400}/g,
  /(?<![a-z0-9])sg\.[a-z0-9_-]{16,64}\.[a-z0-9_-]{16,64}(?![a-z0-9_-])/g, // SendGrid
  /(?<![a-z0-9])\d{8,10}:aa[a-z0-9_-]{33}(?![a-z0-9_-])/g, // Telegram
  /(?<![a-z0-9])eyj[a-z0-9_-]{8,2000}\.eyj[a-z0-9_-]{8,4000}\.[a-z0-9_-]{8,1000}/g, // a signed JSON web token (RFC 7519)
  /hooks\.slack\.com\/(services\/t[a-z0-9]{6,14}\/b[a-z0-9]{6,14}\/[a-z0-9]{16,40})/g,
];
/** A private key (RFC 7468), whole or as far as it came. */
const privateKey =
  /-{3,5} ?begin [a-z0-9 ]{0,24}private key(?: block)? ?-{3,5}[^-]{0,12000}(?:-{3,5} ?end [a-z0-9 ]{0,24}private key(?: block)? ?-{3,5})?/g;
/** The password of a URL: `postgres://app:secret@host`. */
const ofUrl = /(?<=:\/\/[^\s:/@]{0,64}:)[^\s:/@]{3,200}(?=@[a-z0-9[])/g;
const bearer = /(?<![a-z])(?:bearer|basic|token)[ ]([a-z0-9._~+/=-]{16,2000})(?![a-z0-9._~+/-])/g;
/** A value that a name gives away: `api_key = "…"`. */
const named =
  /(?<![a-z])(?:api|access|secret|private|auth|account|client|app|service|signing|encryption|master)[ _-]?(?:(?:access|secret|auth|api)[ _-]?)?(?:keys?|tokens?|secrets?|passwords?)['"]?(?: is)?[ ]?(?:[:=]>?|(?<= is))[ ]?["'`]?([a-z0-9._~+/=!@#$%^&*-]{12,400})/g;
const password =
  /(?<![a-z])(?:password|passwd|passphrase|pwd|passwort|contrasena|mot de passe)['"]?[ ]?[:=][ ]?["'`]?([^\s"'`<>,;{}()]{8,200})/g;

/** Secrets by their forms: keys of providers, tokens, passwords of URLs, private keys, and values that a name gives away. */
export function findSecrets({ text }: GuardText): Span[] {
  const bearing = [...findSpans(text, bearer), ...findSpans(text, named), ...findSpans(text, password)];
  return [
    ...forms.flatMap((form) => findSpans(text, form)).filter((span) => hasDigit(text, span)),
    ...findSpans(text, privateKey),
    ...findSpans(text, ofUrl).filter((span) => !isPlaceholder(text.slice(span.start, span.end))),
    ...bearing.filter((span) => isRandom(text.slice(span.start, span.end))),
  ];
}

const hasDigit = (text: string, { start, end }: Span) => /\d/.test(text.slice(start, end));
const isPlaceholder = (value: string) => /^(?:pass(?:word|wd)?|pwd|secret|\*+|x+|\.+|\$\{?\w*\}?|<.*)$/.test(value);
/** Whether a value is one that nobody would write as a word, an address or a number. */
const isRandom = (value: string) =>
  /\d/.test(value) &&
  /[a-z]/.test(value) &&
  !/^(?:process|os|env|config|settings|https?|\$|%|<|\{|self|this)[.:/{(\w]*/.test(value);
