// The shapes of well-known secrets. A quantifier without an upper limit is never followed by anything that could fail, or
// its characters cannot come before the match: then no text makes a pattern try the same characters more than once.

/** A kind of secret that `redact()` recognizes by its shape. */
export type SecretShape = "tokens" | "jwts" | "private-keys" | "cards" | "emails";

export const SHAPES: readonly SecretShape[] = ["tokens", "jwts", "private-keys", "cards", "emails"];
/** What is shown in the place of a secret. */
export const REDACTED = "[redacted]";

const TOKENS = [
  // Authorization: Bearer. With a digit, since many texts have "bearer" before another word.
  String.raw`[Bb]earer\s{1,4}(?=[A-Za-z._~+/-]{0,200}\d)[A-Za-z0-9._~+/-]{16,}=*`,
  String.raw`\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b`,
  String.raw`(?<=aws_secret_access_key["']?\s{0,4}[:=]\s{0,4}["']?)[A-Za-z0-9/+]{40}`,
  String.raw`\bgh[pousr]_[A-Za-z0-9]{36,255}`,
  String.raw`\bgithub_pat_\w{22,255}`,
  String.raw`(?<![\w-])glpat-[\w-]{20,}`,
  String.raw`(?<![\w-])xox[abeoprs]-[\w-]{10,}`,
  String.raw`(?<![\w-])xapp-[\w-]{20,}`,
  String.raw`hooks\.slack\.com/services/[\w/]{20,}`,
  // OpenAI, Anthropic and others.
  String.raw`(?<![\w-])sk-(?=[A-Za-z_-]{0,60}\d)[\w-]{20,}`,
  String.raw`\b[rsw][kh]_?(?:live|test|sec)_[A-Za-z0-9]{16,}`,
  String.raw`(?<![\w-])AIza[\w-]{35}`,
  String.raw`(?<![\w-])ya29\.[\w-]{20,}`,
  String.raw`\bnpm_[A-Za-z0-9]{36}\b`,
  String.raw`\bhf_[A-Za-z0-9]{30,}`,
  String.raw`\bdop_v1_[a-f0-9]{64}\b`,
].join("|");
const JWT = String.raw`(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{10,}`;
const CARD = String.raw`(?<![\d.-])\d(?:[ -]?\d){12,18}(?!\d)`;
const EMAIL = String.raw`(?<![\w.%+-])[\w.%+-]{1,64}@[A-Za-z0-9.-]{1,253}\.[A-Za-z]{2,24}`;
export const SHORTEST: Readonly<Record<SecretShape, number>> = {
  tokens: 15,
  jwts: 34,
  "private-keys": 27,
  cards: 13,
  emails: 6,
};

export function hiderOfShape(shape: SecretShape): (text: string) => string {
  if (shape === "private-keys") return hidePrivateKeys;
  const source = { tokens: TOKENS, jwts: JWT, cards: CARD, emails: EMAIL }[shape];
  const pattern = new RegExp(source, "g");
  // In a text without secrets, which is the usual case, it takes half the time of a replacement.
  const isThere = new RegExp(source);
  const hide = (match: string): string => {
    if (shape === "cards") return isCardNumber(match) ? REDACTED : match;
    return `${/^bearer\s+/i.exec(match)?.[0] ?? ""}${REDACTED}`;
  };
  return (text) => (isThere.test(text) ? text.replace(pattern, hide) : text);
}

const KEY_BEGIN = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g;
const KEY_END = /-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g;

/** Replaces PEM blocks. A block without an end reaches to the end of the text. */
function hidePrivateKeys(text: string): string {
  if (!text.includes("-----BEGIN ")) return text;
  let [redacted, at] = ["", 0];
  for (;;) {
    KEY_BEGIN.lastIndex = at;
    const begin = KEY_BEGIN.exec(text);
    if (begin === null) return redacted + text.slice(at);
    redacted += text.slice(at, begin.index) + REDACTED;
    KEY_END.lastIndex = KEY_BEGIN.lastIndex;
    if (KEY_END.exec(text) === null) return redacted;
    at = KEY_END.lastIndex;
  }
}

/** The check of Luhn. */
function isCardNumber(text: string): boolean {
  const digits = [...text.replaceAll(/\D/g, "")].toReversed().map(Number);
  const sum = digits.reduce((total, digit, index) => {
    const doubled = digit * 2;
    return total + (index % 2 === 0 ? digit : doubled > 9 ? doubled - 9 : doubled);
  }, 0);
  return sum % 10 === 0 && digits.some((digit) => digit !== 0);
}
