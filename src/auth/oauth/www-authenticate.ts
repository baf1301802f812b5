// Parses the header WWW-Authenticate (RFC 9110, 11.6.1) and picks the parameters that matter for tokens (RFC 6750, RFC
// 9728, RFC 9449). It skips what it cannot read, since many servers send invalid quotes.

/** The parameters of all challenges for tokens in one header. */
export interface ChallengeParams {
  /** The schemes of all challenges in the header, also of those not for tokens, in lower case. */
  readonly schemes: ReadonlySet<string>;
  /** The URL of the resource metadata. */
  readonly metadata?: string;
  readonly scopes?: readonly string[];
  readonly error?: string;
  readonly description?: string;
}

interface SchemeChallenge {
  readonly scheme: string;
  readonly params: Map<string, string>;
}

/** Parses a header value, which may be several headers joined by commas. */
export function parseChallenge(header: string | undefined): ChallengeParams {
  const all = parseSchemes(header ?? "");
  const forTokens = all.filter(({ scheme }) => scheme === "bearer" || scheme === "dpop");
  const first = (name: string, among = forTokens): string | undefined =>
    among.map(({ params }) => params.get(name)).find((value) => value !== undefined && value !== "");
  const metadata = first("resource_metadata") ?? first("resource_metadata", all);
  const scopes = first("scope")?.split(/\s+/).filter(Boolean);
  const error = first("error");
  const description = first("error_description");
  return {
    schemes: new Set(all.map(({ scheme }) => scheme)),
    ...(metadata === undefined ? undefined : { metadata }),
    ...(scopes === undefined || scopes.length === 0 ? undefined : { scopes }),
    ...(error === undefined ? undefined : { error }),
    ...(description === undefined ? undefined : { description }),
  };
}

const GAP = /[\s,]*/y;
const NAME = /[\w!#$%&'*+.^`|~-]+/y;
const EQUALS = /[ \t]*=[ \t]*/y;
const QUOTED = /"((?:[^"\\]|\\.)*)"?/sy;
const BARE = /[^\s,]*/y;

function parseSchemes(header: string): SchemeChallenge[] {
  const challenges: SchemeChallenge[] = [];
  let at = 0;
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const match = pattern.exec(header);
    if (match !== null) at = pattern.lastIndex;
    return match;
  };
  for (;;) {
    take(GAP);
    if (at >= header.length) return challenges;
    const name = take(NAME)?.[0].toLowerCase();
    if (name === undefined) {
      at += 1;
      continue;
    }
    const params = challenges.at(-1)?.params;
    if (params === undefined || take(EQUALS) === null) {
      challenges.push({ scheme: name, params: new Map() });
      continue;
    }
    const value = take(QUOTED)?.[1]?.replaceAll(/\\(.)/gs, "$1") ?? take(BARE)?.[0] ?? "";
    // The first value is used, since a repeated parameter may have been injected.
    if (!params.has(name)) params.set(name, value);
  }
}
