// Opens the console of a gateway that this process serves: over HTTP for browsers, and on the control socket for commands,
// which get some more there.

import { Console } from "../../console/console.ts";
import type { ConsoleHost } from "../../console/host.ts";
import { consolePath } from "../../console/pages.ts";
import { ApiError, type Route } from "../../console/route.ts";
import { defined, errorMessage } from "../../core/values.ts";
import type { HttpRequest } from "../../http/server/http-request.ts";
import { openControl } from "./control.ts";

export interface OpenedConsole {
  /** Answers requests of browsers for the pages; false for other paths. */
  readonly answerPage: (request: HttpRequest) => boolean;
  /** Makes a link that opens the console once in one browser. Undefined if it is not served. */
  readonly link: (() => string) | undefined;
  /** Ends the streams of pages, which would delay the end of the server. */
  readonly close: () => void;
}

export interface OpenConsoleOptions {
  /** The generated token that callers must send, so that other commands of this user can call. */
  readonly token: string | undefined;
  /** Whether callers must send a token. */
  readonly hasToken: boolean;
  /** Whether there are pages, and calls are observed from now on. */
  readonly isServed: boolean;
}

export async function openConsoleOf(
  host: ConsoleHost,
  { token, hasToken, isServed }: OpenConsoleOptions,
): Promise<OpenedConsole> {
  const { origin, pathname, port, protocol } = new URL(host.info().url);
  const base = consolePath(pathname);
  const opened = new Console(host, { hasToken });
  if (isServed) opened.start();
  const link = isServed ? (): string => `${origin}${base}#${opened.createToken()}` : undefined;
  try {
    await openControl([...opened.routes, ...privateRoutes(host, token, link)]);
  } catch (error) {
    const message = `catenary status, logs and restart cannot reach this gateway: ${errorMessage(error)}`;
    host.log.write({ level: "warning", message });
  }
  const answerPage = isServed ? opened.pages(base, Number(port || (protocol === "https:" ? 443 : 80))) : () => false;
  return { answerPage, link, close: () => opened.close() };
}

/** For the user who has started the gateway, and not for pages. */
function privateRoutes(
  host: ConsoleHost,
  token: string | undefined,
  link: (() => string) | undefined,
): readonly Route[] {
  return [
    { method: "GET", path: "token", about: "The generated token of callers.", run: () => defined({ token }) },
    {
      method: "POST",
      path: "link",
      about: "A new link to the console, for one browser.",
      run: () => {
        if (link !== undefined) return { link: link() };
        throw new ApiError(
          409,
          "This gateway has no console",
          'write {"console": true} in its config, or use catenary up',
        );
      },
    },
    {
      method: "POST",
      path: "reload",
      about: "Reads the config again. Returns whether it is in use now.",
      run: async () => {
        if (host.reload !== undefined) return { isUsed: await host.reload() };
        throw new ApiError(409, "This gateway has no config to read again");
      },
    },
  ];
}
