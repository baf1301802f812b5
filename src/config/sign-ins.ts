// The sign-ins of a running gateway: which pages wait for a user now, and how the console begins one. Separate from
// sign-in.ts, which requests to an upstream go through: nothing here is loaded before someone asks for a sign-in.

import type { Redirect } from "../auth/oauth/types.ts";
import type { ConnectOptions } from "../client/connect.ts";
import { deferred, ignoreRejection, withTimeout } from "../core/async.ts";
import { ConnectionError } from "../core/errors.ts";
import { defined } from "../core/values.ts";
import { createOAuth, type SignIn, type SignInTarget } from "./sign-in.ts";

/** A package manager may put the server to sleep; waiting for the user does not count. */
const START_TIMEOUT_MS = 60_000;
/** Another process of the user may be signing in to the same server, and holds the lock of its tokens. */
const PAGE_TIMEOUT_MS = 30_000;

/** A sign-in that has begun. */
export interface BegunSignIn {
  /** Where the user signs in, http or https. Undefined if the server wants no other tokens than those that are there. */
  readonly page: URL | undefined;
  /** Resolves when the tokens are stored. Rejects if the user does not come back, or they are refused. */
  readonly done: Promise<void>;
}

export class SignIns {
  readonly #begun = new Map<string, BegunSignIn>();

  /** The page of an upstream that waits for its user now. */
  page(upstream: string): URL | undefined {
    return this.#begun.get(upstream)?.page;
  }

  /** The same sign-in of a gateway, with its pages known here. */
  watching(signIn: SignIn): SignIn {
    return async (target) => {
      const redirect = await signIn(target);
      return redirect === undefined || target.name === undefined ? redirect : this.#watched(target.name, redirect);
    };
  }

  /** Returns the page for the user, whom our loopback address waits for. One that is open already is returned again. */
  async begin(
    target: SignInTarget & { readonly name: string },
    { headers, onNotice }: Pick<ConnectOptions, "headers"> & { readonly onNotice: (text: string) => void },
  ): Promise<BegunSignIn> {
    const { name, url, settings } = target;
    const known = this.#begun.get(name);
    if (known !== undefined) return known;
    const { loopbackRedirect } = await import("../auth/oauth/loopback-redirect.ts");
    const opened = deferred<URL>();
    const port = settings.callbackPort;
    const redirect = loopbackRedirect({ open: (page) => opened.resolve(page), ...defined({ port }) });
    const { auth } = await createOAuth(settings, onNotice, this.#watched(name, redirect));
    const stop = new AbortController();
    const done = ignoreRejection(signInAt(url, { auth, signal: stop.signal, ...defined({ headers }) }));
    const late = `${url.host} did not ask for a sign-in within ${PAGE_TIMEOUT_MS / 1_000} s: another command may be signing in; try again later`;
    try {
      const first = (): Promise<URL | undefined> => Promise.race([opened.promise, done.then(() => undefined)]);
      return { page: await withTimeout(PAGE_TIMEOUT_MS, stop.signal, first, late), done };
    } catch (error) {
      stop.abort(new ConnectionError("cancelled", late, { mayHaveRun: false }));
      throw error;
    }
  }

  #watched(name: string, redirect: Redirect): Redirect {
    return {
      get uri() {
        return redirect.uri;
      },
      visit: async (page, options) => {
        const visit = redirect.visit(page, options);
        const begun = { page, done: ignoreRejection(visit.then(() => undefined)) };
        this.#begun.set(name, begun);
        try {
          return await visit;
        } finally {
          if (this.#begun.get(name) === begun) this.#begun.delete(name);
        }
      },
    };
  }
}

/** Connects, so that the server asks for a sign-in if it does that at all. */
export async function signInAt(url: URL, options: Pick<ConnectOptions, "auth" | "headers" | "signal">): Promise<void> {
  const { connect } = await import("../client/connect.ts");
  const client = await connect(url, { ...options, startTimeoutMs: START_TIMEOUT_MS });
  try {
    // Some servers let everybody connect, and ask when something is wanted of them.
    if (client.capabilities.tools !== undefined) await client.listTools();
  } finally {
    await client.close();
  }
}
