// Tokens kept in memory: they end with the process, and no other process sees them. What a program uses that says
// nothing else.

import type { TokenStore } from "./token-store.ts";
import { Turns } from "./turns.ts";

export function memoryTokens(): TokenStore {
  const values = new Map<string, string>();
  const turns = new Turns();
  return {
    get: (key) => Promise.resolve(values.get(key)),
    set: (key, value) => {
      if (value === undefined) values.delete(key);
      else values.set(key, value);
      return Promise.resolve();
    },
    exclusively: (key, work, signal) => turns.take(key, work, signal),
  };
}
