// Requests that name a tool or a prompt, brought to the end that has it. A name that is known costs one look; one that
// is not makes all ends be asked for their names, once. What an end answers is its own.

import type { Context } from "../../core/handler.ts";
import type { Request, Result } from "../../core/handler.ts";
import { invalidParams, McpError } from "../../protocol/errors.ts";
import { named } from "./failures.ts";
import type { Member, RoutedUpstream } from "./member.ts";
import type { Target } from "./names.ts";
import type { View } from "./view.ts";

export type Named = "tools" | "prompts";

const WORDS = {
  tools: { one: "tool", kind: "tool_not_found", field: "toolName" },
  prompts: { one: "prompt", kind: "prompt_not_found", field: "promptName" },
} as const;

/** The end answers, or fails under its name. */
export async function ask({ name, handler }: RoutedUpstream, request: Request, context: Context): Promise<Result> {
  try {
    return await handler(request, context);
  } catch (error) {
    throw context.signal.aborted ? error : named(name, error);
  }
}

/** Throws where the name leads to no end, or to several. */
export async function targetOf(kind: Named, name: string, context: Context, view: View): Promise<Target> {
  const found = await view.find(kind, name, context);
  if (found !== undefined) return found;
  const directory = view.directories[kind];
  const owners = directory.names.owners(name);
  // An end may have what it does not list; where it is the only one, it is meant.
  const said = owners.length > 1 ? undefined : alone(kind, name, view);
  if (said !== undefined) return said;
  throw unknownName(kind, name, view);
}

/** Where one end alone has any at all, it is the one to say what is wrong with the name. */
function alone(kind: Named, name: string, { members, directories }: View): Target | undefined {
  const isOpen = ({ end, capabilities }: Member): boolean =>
    capabilities === undefined || !directories[kind].isKnown(end.index);
  if (members.some(isOpen)) return undefined;
  const [only, ...others] = members.filter((member) => member.has(kind));
  // Where every name has a label, one without is no name of anybody's.
  if (only === undefined || others.length > 0 || directories[kind].isAlways) return undefined;
  return { end: only.end.index, name };
}

function unknownName(kind: Named, name: string, { directories }: View): McpError {
  const { names, problems } = directories[kind];
  const { one, kind: notFound, field } = WORDS[kind];
  const otherwise = directories[kind].otherwise(name);
  const owners = names.owners(name).map((end) => names.shown(end, name));
  const candidates = owners.length === 0 && otherwise !== undefined ? [otherwise] : owners;
  if (candidates.length > 1) {
    const message = `Several ends have a ${one} named ${name}; say which one: ${candidates.join(", ")}`;
    return invalidParams(message, { [field]: name, candidates });
  }
  const message = `${one === "tool" ? "Tool" : "Prompt"} not found: ${name}`;
  if (candidates.length === 1) {
    return McpError.of(notFound, `${message}; it is called ${candidates.join()} here`, { [field]: name, candidates });
  }
  const away = problems.length === 0 ? "" : `; not every end could be asked: ${problems.join("; ")}`;
  return McpError.of(notFound, message + away, { [field]: name });
}
