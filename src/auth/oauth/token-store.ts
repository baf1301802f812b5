// Where tokens and client registrations are kept between runs, as the rest of the room sees it: texts by keys, and a
// lock, so that of many processes with one store only one refreshes a token while the others wait for what it brings.
// A key names an issuer and an end, so what belongs to one is never found under another. Types only.

export interface TokenStore {
  get(key: string): Promise<string | undefined>;
  /** Undefined forgets it. */
  set(key: string, value: string | undefined): Promise<void>;
  /** Runs `work` while nobody else, here or in another process, runs any for the same key. */
  exclusively<T>(key: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
}
