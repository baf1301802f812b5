// Whether there was a sign-in to a server before. Separate so that the store of tokens is loaded only if a server asks for
// a sign-in.

import { storedServers } from "../auth/oauth/stored-tokens.ts";
import { fileTokens } from "../auth/oauth/token-stores.ts";

/** Whether tokens are stored that are no longer valid. */
export async function hadSignIn(url: string): Promise<boolean> {
  const { href } = new URL(url);
  const stored = await storedServers(fileTokens(undefined, { onNotice: () => undefined }));
  return stored.some((server) => server.url === href && server.tokens !== undefined);
}
