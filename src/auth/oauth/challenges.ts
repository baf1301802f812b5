// What an end says when it refuses: the header WWW-Authenticate (RFC 9110, 11.6.1), which may hold several schemes
// with parameters each, and what of it matters for tokens (RFC 6750, RFC 9728, RFC 9449). Read leniently, because
// ends quote badly: what cannot be read is passed over, never guessed at.

/** What the challenges for tokens say together. */
export interface Told {
  /** In lower case. */
  readonly schemes: ReadonlySet<string>;
  /** Where the end's metadata stands. */
  readonly metadata?: string;
  readonly scopes?: readonly string[];
  readonly error?: string;
  readonly description?: string;
}

interface Challenge {
  readonly scheme: string;
  readonly params: Map<string, string>;
}

/** Of a header's value, in which several headers of that name may be joined by commas. */
export function toldBy(header: string | undefined): Told {
  const all = parsed(header ?? "");
  const ours = all.filter(({ scheme }) => scheme === "bearer" || scheme === "dpop");
  const first = (name: string, among = ours): string | undefined =>
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

function parsed(header: string): Challenge[] {
  const challenges: Challenge[] = [];
  let at = 0;
  const take = (what: RegExp): RegExpExecArray | null => {
    what.lastIndex = at;
    const match = what.exec(header);
    if (match !== null) at = what.lastIndex;
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
    // The first counts: what is said twice is said by somebody else.
    if (!params.has(name)) params.set(name, value);
  }
}
