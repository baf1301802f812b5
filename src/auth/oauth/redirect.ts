// How a person gets to an authorization server and back: a browser and a port of this machine, a terminal, a page of
// the program itself. What is asked there and what the answer means is not known here. Types only.

export interface Redirect {
  /** Where the authorization server sends the person back to. It is registered there, so it stays the same. */
  readonly uri: string | Promise<string>;
  /**
   * Sends the person to `url`; resolves to the address at which the person came back, with `code`, `state`, `iss` or
   * `error` in its query, just as it was. Rejects where nobody comes back, or the signal is aborted.
   */
  visit(url: URL, options: { readonly signal: AbortSignal }): Promise<URL>;
}
