// What the operator does in live sessions: each action is a call of a tool of the server, through the whole gateway, as
// the operator and for the owner of the session. So it is in log and audit, and middleware can refuse it.

import { CODE_MODE, type LiveAction, type LivePlace, type LiveServer } from "../core/live-server.ts";
import type { Result } from "../core/handler.ts";
import { errorMessage, isObject } from "../core/values.ts";
import type { ItemHandler } from "../chain/layer.ts";
import { OWN_NAMES, UPSTREAM } from "../protocol/lists.ts";
import type { ConsoleHost } from "./host.ts";
import { type FoundSession, idOf, type LiveSessions } from "./live.ts";
import { callAsOperator, operatorContext } from "./operator-call.ts";
import { ApiError, type ApiRequest } from "./route.ts";
import type { LiveAnswer } from "./types.ts";

/** As the id of a call: what a person does there is in Traffic. */
const LIVE = "live";

type Body = ApiRequest["body"];
type Arguments = Readonly<Record<string, unknown>>;

/** A session that may not exist yet. */
interface Target extends LivePlace {
  readonly serverName: string;
  readonly server: LiveServer;
}

export class LiveActions {
  readonly #host: ConsoleHost;
  readonly #sessions: LiveSessions;
  /** The names of tools at the gateway, by server and own name, as long as names lead to the same. */
  #names: { readonly version: number; readonly byTool: Map<string, string> } | undefined;

  constructor(host: ConsoleHost, sessions: LiveSessions) {
    this.#host = host;
    this.#sessions = sessions;
  }

  /**
   * `POST evaluate`: `code` in `session`, or in the session `name` of `server`, which is started if there is none. With
   * `frame`, in that frame of the error that is open; with `restart`, takes that restart, with the value of the code
   * `value`. Answers when the evaluation has ended. It goes on if the page leaves, until it is interrupted.
   */
  evaluate(body: Body): Promise<LiveAnswer> {
    const { code, frame, restart, value, timeout } = body;
    const target = this.#target(body);
    const limit = typeof timeout === "number" ? { timeout } : undefined;
    if (restart !== undefined) {
      if (typeof restart !== "string") throw new ApiError(400, '"restart" must be the name or the number of a restart');
      const taken = { restart, ...(typeof value === "string" && value !== "" && { value }), ...limit };
      return this.#call(target, "restart", taken);
    }
    if (typeof code !== "string" || code.trim() === "") throw new ApiError(400, '"code" must be code, and not empty');
    if (typeof frame === "number") return this.#call(target, "frame", { frame, code, ...limit });
    return this.#call(target, "evaluate", { code, ...limit });
  }

  /** `POST interrupt`, `reset`, `save` and `restore`. */
  act(action: Exclude<LiveAction, "evaluate" | "frame" | "restart">, body: Body): Promise<LiveAnswer> {
    const target = this.#existing(body["session"]);
    if (action === "interrupt" || action === "reset") return this.#call(target, action, {});
    const checkpoint = body[action === "save" ? "name" : "checkpoint"];
    if (checkpoint !== undefined && typeof checkpoint !== "string") {
      throw new ApiError(400, "The name of a checkpoint must be a string");
    }
    return this.#call(target, action, checkpoint === undefined ? {} : { checkpoint });
  }

  #existing(id: unknown): FoundSession {
    if (typeof id !== "string") throw new ApiError(400, '"session" must be the id of a session');
    return this.#sessions.find(id);
  }

  #target(body: Body): Target {
    const { session, server: serverName, name = "main" } = body;
    if (session !== undefined) return this.#existing(session);
    const server = typeof serverName === "string" ? this.#sessions.servers.get(serverName) : undefined;
    if (server === undefined || typeof serverName !== "string") {
      const known = [...this.#sessions.servers.keys()].join(", ");
      const hint =
        known === "" ? 'add one to the config: {"mcpServers": {"js": {"live": "js"}}}' : `there are ${known}`;
      throw new ApiError(404, `There is no server of live sessions ${JSON.stringify(serverName ?? "")}`, hint);
    }
    if (typeof name !== "string") throw new ApiError(400, '"name" must be the name of a session');
    return { serverName, server, session: name, owner: this.#host.running.owner ?? "" };
  }

  async #call(target: Target, action: LiveAction, args: Arguments): Promise<LiveAnswer> {
    const { server, serverName, owner, session } = target;
    const tool = server.tools[action];
    if (tool === undefined)
      throw new ApiError(409, `${server.title} sessions of ${serverName} cannot do that: ${action}`);
    const { gateway } = this.#host.running;
    // A page that leaves does not end what it has begun.
    const { signal } = new AbortController();
    let result: Result;
    try {
      const name = await this.#nameOf(serverName, tool, operatorContext({ owner, signal }));
      const context = operatorContext({ owner, signal, call: LIVE });
      const params = { name, arguments: { ...args, session } };
      result = await callAsOperator(gateway, { method: "tools/call", params }, context);
    } catch (error) {
      if (error instanceof ApiError) throw error;
      throw new ApiError(409, errorMessage(error));
    }
    const isError = result["isError"] === true;
    // What has run has its status there.
    const isRefused = isError && result["structuredContent"] === undefined;
    return { session: idOf(serverName, target), isError, ...(isRefused && { isRefused }), text: textOf(result) };
  }

  /** The name that the tool has for callers of the gateway. */
  async #nameOf(server: string, tool: string, context: ReturnType<typeof operatorContext>): Promise<string> {
    if (server === CODE_MODE) return tool;
    const gateway: ItemHandler = this.#host.running.gateway;
    const version = gateway.items?.version(context.caller) ?? 0;
    if (this.#names?.version !== version) this.#names = { version, byTool: new Map() };
    const { byTool } = this.#names;
    const key = `${server}\n${tool}`;
    const known = byTool.get(key);
    if (known !== undefined) return known;
    const name = (await this.#likelyName(server, tool, context)) ?? (await this.#listedName(server, tool, context));
    if (name !== undefined) {
      byTool.set(key, name);
      return name;
    }
    const hint = "the chain of the config hides it, such as by filter; let it through for the console";
    throw new ApiError(409, `The gateway has no tool ${tool} of ${server}`, hint);
  }

  /** Most tools have their own name, or that of the server before it. */
  async #likelyName(
    server: string,
    tool: string,
    context: ReturnType<typeof operatorContext>,
  ): Promise<string | undefined> {
    const { items } = this.#host.running.gateway as ItemHandler;
    for (const name of [tool, `${server}.${tool}`, `${server}_${tool}`]) {
      const item = await items?.find("tools", name, context);
      if (item === undefined || item.hiddenBy !== undefined || !item.isKnown) continue;
      const isOfServer = item.upstream === undefined || item.upstream === server || item.upstreams.includes(server);
      if (isOfServer && (item.ownNames.at(-1) ?? item.name) === tool) return name;
    }
    return undefined;
  }

  async #listedName(
    server: string,
    tool: string,
    context: ReturnType<typeof operatorContext>,
  ): Promise<string | undefined> {
    const { gateway } = this.#host.running;
    let cursor: unknown;
    do {
      const params = cursor === undefined ? {} : { cursor };
      const { tools, nextCursor } = await callAsOperator(gateway, { method: "tools/list", params }, context);
      for (const { name, _meta } of Array.isArray(tools) ? (tools as { name: string; _meta?: unknown }[]) : []) {
        const { [UPSTREAM]: upstream = server, [OWN_NAMES]: names } = isObject(_meta) ? _meta : {};
        const own: unknown = Array.isArray(names) ? names.at(-1) : name;
        if (upstream === server && own === tool) return name;
      }
      cursor = nextCursor;
    } while (typeof cursor === "string");
    return undefined;
  }
}

function textOf({ content }: Result): string {
  const blocks = Array.isArray(content) ? (content as { readonly text?: unknown }[]) : [];
  return blocks.flatMap(({ text }) => (typeof text === "string" ? [text] : [])).join("\n");
}
