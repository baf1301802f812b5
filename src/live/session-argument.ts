// The argument by which a call names a session, and whose session that is: one of the same person, as far as the wire
// proves who calls.

import type { ToolContext } from "../server/call-context.ts";
import type { Given } from "./arguments.ts";
import type { Session } from "./session.ts";
import type { Sessions } from "./sessions.ts";
import type { Arguments } from "./tool.ts";

/** The session of who names none. */
const MAIN = "main";

export const SESSION: Arguments = {
  session: { type: "string", description: "Name of the session; made where there is none", default: MAIN },
};

export function nameOf({ session }: Given): string {
  return (session as string | undefined) ?? MAIN;
}

export function ownerOf({ caller }: ToolContext): string {
  return caller.principal ?? "";
}

/** Made where there is none. */
export function sessionOf(sessions: Sessions, args: Given, context: ToolContext): Session {
  return sessions.get(ownerOf(context), nameOf(args));
}
