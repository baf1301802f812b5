// One request to a token endpoint, whichever grant makes it. A server that wants its own nonce in the proof of a key
// says so by refusing (RFC 9449, 8): the key has noted the nonce by then, and the request is made once more.

import { isDPoPNonceError } from "oauth4webapi";

/** `work` makes the request and reads its answer. */
export async function withNonce<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isDPoPNonceError(error)) throw error;
    return await work();
  }
}
