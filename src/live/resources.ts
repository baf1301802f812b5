// The resources, completions and prompts of a live server. Those of the host are about sessions: long texts, the
// transcript, the definitions. Those of a language are read by the guest, in the session `main` of the caller.

import { callerKey } from "../core/caller-key.ts";
import type { Caller, Handler, Notification } from "../core/handler.ts";
import { defined } from "../core/values.ts";
import { McpError } from "../protocol/errors.ts";
import type { Resource } from "../protocol/model/index.ts";
import { covers, filterOf, namesIn, resourceUpdated } from "../protocol/subscription.ts";
import type { ToolContext } from "../server/call-context.ts";
import type { Server } from "../server/server.ts";
import { DEFAULT_SESSION } from "./common-tools.ts";
import type { GuestParams, GuestReply } from "./guest.ts";
import { PRINTED } from "./output.ts";
import type { GuestText } from "./runtime.ts";
import type { Session } from "./session.ts";
import type { Sessions } from "./sessions.ts";
import { fits, type Language, type LanguageResource } from "./tool.ts";

const SESSION_URI = "live://session/";
const TEXT = { mimeType: "text/plain" } as const;
/** A completion that takes longer is of no use to the person who types. */
const COMPLETE_TIMEOUT_MS = 2_000;

export function registerResources(server: Server, language: Language, sessions: Sessions): void {
  for (const resource of language.resources ?? []) registerLanguageResource(server, resource, sessions);
  for (const prompt of language.prompts ?? []) {
    const { name, title, description, arguments: args } = prompt;
    const declared = Object.entries(args).map(([argument, options]) => {
      // What a template of the language completes, its prompts complete too.
      const template = language.resources?.find(({ uriTemplate }) => uriTemplate.includes(`{${argument}}`));
      const complete = template && argumentCompleter(sessions, template.uriTemplate, argument);
      return [argument, { ...options, ...defined({ complete }) }] as const;
    });
    const options = { ...defined({ title }), description, arguments: Object.fromEntries(declared) };
    server.prompt(name, options, (args) => {
      const text = prompt.text(args);
      if (prompt.about === undefined) return text;
      return { description: prompt.about(args), messages: [{ role: "user", content: { type: "text", text } }] };
    });
  }
  registerSessionResources(server, sessions);
}

type Complete = (value: string, context: CompleteContext) => Promise<readonly string[]>;

interface CompleteContext {
  readonly arguments: Readonly<Record<string, string>>;
  readonly caller: Caller;
}

/** Asks the guest for the values of one variable of a template. */
function argumentCompleter(sessions: Sessions, template: string, argument: string): Complete {
  return async (value, { arguments: others, caller }) => {
    const session = sessions.get(callerKey(caller, "sessions"), DEFAULT_SESSION);
    return valuesOf(await ask(session, "complete-argument", { template, argument, value, others }));
  };
}

function registerLanguageResource(server: Server, resource: LanguageResource, sessions: Sessions): void {
  const { uriTemplate, ...options } = resource;
  const read = async (args: Readonly<Record<string, unknown>>, context: ToolContext, uri: string): Promise<object> => {
    const session = sessions.get(callerKey(context.caller, "sessions"), DEFAULT_SESSION);
    const params = { template: uriTemplate, arguments: args };
    const { outcome, reply, reason } = await session.run("read-resource", params, { context });
    const { text, isError, hint, mimeType = resource.mimeType } = reply as Partial<GuestText>;
    if (outcome !== "answered") throw new Error(reason ?? `Reading ${uri} was stopped`);
    if (isError === true)
      throw McpError.of("resource_not_found", `${uri}: ${text ?? "not found"}`, defined({ uri, hint }));
    return { contents: [defined({ uri, mimeType, text: text ?? "" })] };
  };
  const variables = Array.from(uriTemplate.matchAll(/\{\W?(\w+)[^}]*\}/g), ([, name = ""]) => name);
  if (variables.length === 0) {
    server.resource(uriTemplate, options, (uri, context) => read({}, context, uri));
    return;
  }
  const complete = Object.fromEntries(
    variables.map((argument) => [argument, argumentCompleter(sessions, uriTemplate, argument)]),
  );
  server.template(uriTemplate, { ...options, complete }, read);
}

function registerSessionResources(server: Server, sessions: Sessions): void {
  const find = ({ name }: { readonly name: string }, context: ToolContext): Session | undefined =>
    sessions.find(callerKey(context.caller, "sessions"), name);
  const names = (typed: string, { caller }: CompleteContext): readonly string[] =>
    sessions
      .list(callerKey(caller, "sessions"))
      .map(({ name }) => name)
      .filter((name) => name.startsWith(typed));
  const list =
    (what: string) =>
    (context: ToolContext): readonly Resource[] =>
      sessions
        .list(callerKey(context.caller, "sessions"))
        .map(({ name }) => ({ uri: `${SESSION_URI}${name}/${what}`, name: `${what} of session ${name}`, ...TEXT }));

  server.template(
    `${SESSION_URI}{name}/output/{n}`,
    {
      name: "Long output",
      description: "Output or a value that was too long for the result of an evaluation",
      ...TEXT,
      complete: { name: names },
    },
    ({ n, ...variables }, context) => find(variables, context)?.log.text(Number(n)),
  );
  server.template(
    `${SESSION_URI}{name}/transcript`,
    {
      name: "Transcript",
      description: "The latest evaluations of a session, with their results",
      ...TEXT,
      complete: { name: names },
      list: list("transcript"),
    },
    (variables, context) => find(variables, context)?.log.transcript(),
  );
  server.template(
    `${SESSION_URI}{name}/definitions`,
    {
      name: "Definitions",
      description: "What is defined in a session",
      ...TEXT,
      complete: { name: names },
      list: list("definitions"),
    },
    async (variables, context) => {
      const session = find(variables, context);
      return session && definitionsText(session, context);
    },
  );
  server.template(
    `${SESSION_URI}{name}/background`,
    {
      name: "Background output",
      description: "What a session has printed since its last evaluation, for example from timers and threads",
      ...TEXT,
      complete: { name: names },
    },
    (variables, context, uri) => {
      const background = find(variables, context)?.background.read();
      return (
        background && { contents: [{ uri, ...TEXT, text: background.text, _meta: { [PRINTED]: background.total } }] }
      );
    },
  );
  const completions = async (owner: string, name: string, code: string): Promise<readonly string[]> => {
    const session = sessions.get(owner, name);
    // A busy session would answer only after the evaluation.
    return session.state === "busy" ? [] : valuesOf(await ask(session, "complete", { code, position: code.length }));
  };
  server.template(
    `${SESSION_URI}{name}/completions/{code}`,
    {
      name: "Completions",
      description: "What can stand at the end of some code, one for each line",
      ...TEXT,
      complete: {
        name: names,
        code: (typed, { arguments: { name = DEFAULT_SESSION }, caller }) =>
          completions(callerKey(caller, "sessions"), name, typed),
      },
    },
    async ({ name, code }, context) =>
      (await completions(callerKey(context.caller, "sessions"), name, code)).join("\n"),
  );
}

/** The reply of the guest; empty if it does not know the request, or was stopped. */
export async function ask(session: Session, op: string, params: GuestParams): Promise<GuestReply> {
  const context = { signal: AbortSignal.timeout(COMPLETE_TIMEOUT_MS) };
  const run = session.run(op, params, { context, timeoutMs: COMPLETE_TIMEOUT_MS, isRead: true });
  return (await run.catch(() => undefined))?.reply ?? {};
}

const VALUES = { type: "object", properties: { values: { type: "array", items: { type: "string" } } } } as const;

function valuesOf(reply: GuestReply): readonly string[] {
  return fits(reply, VALUES) ? ((reply["values"] as readonly string[] | undefined) ?? []) : [];
}

/** As the guest lists them. */
export async function definitionsText(session: Session, context: Pick<ToolContext, "signal">): Promise<string> {
  if (session.state === "stopped") return "Nothing is defined: the session has no process.";
  const { outcome, reply } = await session.run("list-definitions", {}, { context, isRead: true });
  const { text } = reply as Partial<GuestText>;
  return outcome === "answered" && typeof text === "string" ? text : session.names.join("\n");
}

interface Listener {
  readonly owner: string;
  readonly uris: readonly string[];
  readonly notify: (notification: Notification) => void;
}

/** Tells callers that subscribed to resources of their own sessions about changes. The server knows no owners. */
export class SessionListeners {
  readonly #listeners = new Set<Listener>();

  /** Passes a `subscriptions/listen` on to the server, and remembers it until it ends. */
  readonly listen =
    (server: Server): Handler =>
    async (request, context) => {
      const uris = namesIn(filterOf(request), "resourceSubscriptions").filter((uri) => uri.startsWith(SESSION_URI));
      if (uris.length === 0) return server(request, context);
      const listener = {
        owner: callerKey(context.caller, "sessions"),
        uris,
        notify: (notification: Notification) => context.notify(notification),
      };
      this.#listeners.add(listener);
      try {
        return await server(request, context);
      } finally {
        this.#listeners.delete(listener);
      }
    };

  /** Resources of the session have changed: `definitions`, `transcript` or `background`. */
  changed(owner: string, session: string, resources: readonly string[]): void {
    for (const what of resources) {
      const uri = `${SESSION_URI}${session}/${what}`;
      for (const { owner: subscribed, uris, notify } of this.#listeners) {
        if (subscribed === owner && uris.some((whole) => covers(whole, uri))) notify(resourceUpdated(uri));
      }
    }
  }
}
