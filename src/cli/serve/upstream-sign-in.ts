// How the commands that serve send the user to the sign-in of an upstream: at a terminal, or in the browser if a client on
// this machine has started us. This is separate from the sign-in of single commands, since callers of a gateway list the
// tools again and again, and must not open the browser each time.

import { hasBrowser } from "../../auth/oauth/browser.ts";
import { loopbackRedirect } from "../../auth/oauth/loopback-redirect.ts";
import { type SignIn, signInNeeded } from "../../config/sign-in.ts";
import { Semaphore } from "../../core/async.ts";
import { defined } from "../../core/values.ts";
import { openSignIn } from "../target/sign-in.ts";
import { printNotice } from "../terminal/output.ts";
import { Prompter } from "../terminal/prompter.ts";
import { oneLine } from "../terminal/text.ts";

/** After a sign-in that was not finished, callers do not open the browser again for this long. */
const PAUSE_MS = 10 * 60_000;

/**
 * One upstream after the other. `isStdio`: a client on this machine has started us, so there is a user if there is a
 * browser.
 */
export function createSignIn(isStdio: boolean): SignIn {
  const turns = new Semaphore(1);
  return (target) => {
    const { name, url, settings } = target;
    const { callbackPort: port } = settings;
    if (!Prompter.isAvailable() && !(isStdio && hasBrowser())) return undefined;
    const print = (text: string): void => printNotice(`${oneLine(name ?? "catenary")}: ${text}`);
    const options = { print, busy: (): void => undefined };
    const redirect = loopbackRedirect({ open: (page) => openSignIn(page, url, options), ...defined({ port }) });
    let pausedUntil = 0;
    return {
      get uri(): string | Promise<string> {
        if (performance.now() >= pausedUntil) return redirect.uri;
        throw signInNeeded(target, "asked for a sign-in that was not finished");
      },
      visit: async (page, { signal }) => {
        const release = await turns.take(signal);
        pausedUntil = performance.now() + PAUSE_MS;
        try {
          const callback = await redirect.visit(page, { signal });
          if (!callback.searchParams.has("error")) pausedUntil = 0;
          return callback;
        } finally {
          release();
        }
      },
    };
  };
}
