// The commands that make a call again: `catenary call`, and curl with the stateless form of the newest revision. What
// they quote is inert in a shell, and the token of the gateway is a variable that the reader sets.

import { statelessHeaders } from "../http/headers.ts";
import { META } from "../protocol/model/base.ts";
import { NEWEST } from "../protocol/revisions/index.ts";
import { catenaryCommand, shellWords, visibleJson } from "./command-line.ts";
import type { CallDetail } from "./types.ts";

export interface CommandTarget {
  readonly url: string;
  /** Whether callers must send a token. */
  readonly hasToken: boolean;
}

/** The name of the variable that stands for the token in a command. */
const TOKEN = "CATENARY_TOKEN";

/** Undefined for what a command cannot make again. */
export function commandsFor(
  method: string,
  params: { readonly [name: string]: unknown },
  target: CommandTarget,
): CallDetail["commands"] {
  const catenary = catenaryCommand(method, params, target.url);
  return catenary === undefined ? undefined : { catenary, curl: curlCommand(method, params, target) };
}

function curlCommand(
  method: string,
  params: { readonly [name: string]: unknown },
  { url, hasToken }: CommandTarget,
): string {
  const { _meta: _ours, requestState: _state, inputResponses: _answers, ...own } = params;
  const meta = {
    [META.revision]: NEWEST.name,
    [META.clientInfo]: { name: "curl", version: "1" },
    [META.clientCapabilities]: {},
  };
  const request = { jsonrpc: "2.0" as const, id: 1, method, params: { ...own, _meta: meta } };
  const lines = [
    shellWords(["curl", "-sS", url]),
    ...Object.entries(statelessHeaders(request)).map(([name, value]) => shellWords(["-H", `${name}: ${value}`])),
    // In double quotes, so that the shell fills it in.
    ...(hasToken ? [`-H "authorization: Bearer $${TOKEN}"`] : []),
    shellWords(["-d", visibleJson(request)]),
  ];
  return lines.join(" \\\n  ");
}
