// Which scopes to ask for (specification: basic/authorization, "Scope Selection Strategy" and "Step-Up Authorization
// Flow"): what the refusal names, else what the end's metadata lists; what was asked for before is kept, so that a
// wider token never loses what the narrower one could do.

export interface ScopeSources {
  /** What the refusal asks for. */
  readonly challenged?: readonly string[] | undefined;
  /** What the end's metadata lists. */
  readonly listed?: readonly string[] | undefined;
  /** What was asked for before, of the same authorization server. */
  readonly before?: readonly string[] | undefined;
  /** What the program wants in any case. */
  readonly wanted?: readonly string[] | undefined;
  /** What the authorization server says it knows. */
  readonly known?: readonly string[] | undefined;
  /** Whether a refresh token is of use. */
  readonly lasting: boolean;
}

const OFFLINE = "offline_access";

/** In the order of their sources, each once; none: the parameter is left out. */
export function scopesToAsk({ challenged, listed, before, wanted, known, lasting }: ScopeSources): readonly string[] {
  const offered = known?.includes(OFFLINE) === true;
  const named = [...(before ?? []), ...(challenged ?? listed ?? [])];
  // A refresh token is no matter of the end's: what it says of that counts only where the server knows it too.
  const scopes = new Set([...named.filter((scope) => scope !== OFFLINE || offered), ...(wanted ?? [])]);
  // Alone it would replace whatever the server gives by default.
  if (lasting && offered && scopes.size > 0) scopes.add(OFFLINE);
  return [...scopes].filter((scope) => /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope));
}

export function covers(scopes: readonly string[], wanted: readonly string[]): boolean {
  return wanted.every((scope) => scopes.includes(scope));
}
