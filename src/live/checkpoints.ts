// Checkpoints: save-session keeps the state of a session on disk under a name, and restore-session starts a process from
// it. A language with images saves one. For others, the code of the evaluations is saved and run again.
// Each caller has its own checkpoints, in files that only the user of this process can read.

import { createHash, randomUUID } from "node:crypto";
import { chmod, readdir, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { callerKey } from "../core/caller-key.ts";
import { replaceBy } from "../core/files.ts";
import { makePrivateDirectory, readPrivate, stateDirectory } from "../core/private-files.ts";
import { errorMessage, isObject } from "../core/values.ts";
import type { LiveCheckpoint } from "../core/live-server.ts";
import type { ToolContext } from "../server/call-context.ts";
import type { Server } from "../server/server.ts";
import type { GuestText, Runtime } from "./runtime.ts";
import { takeFile } from "./sandbox.ts";
import type { JournalEntry } from "./session-log.ts";
import type { Session } from "./session.ts";
import { NAME, type Sessions } from "./sessions.ts";
import { type ArgumentSpecs, text, type ToolArguments, toolInput } from "./tool.ts";
import { SESSION_ARGUMENT, sessionName } from "./common-tools.ts";

/** How many checkpoints a caller has in a language; saving one more deletes the oldest. */
const MAX_CHECKPOINTS = 10;
/** How large the file of a checkpoint may be. */
const MAX_MB = 2_000;
/** The same if it has code, which is limited too. */
const MAX_CODE_MB = 10;
/** Where a checkpoint is written first. One that is older was left by a process that was killed. */
const DRAFT = ".new";
const MAX_DRAFT_AGE_MS = 3_600_000;

const ARGUMENTS: ArgumentSpecs = {
  checkpoint: text("Default: the name of the session"),
  ...SESSION_ARGUMENT,
};

export function registerCheckpoints(server: Server, runtime: Runtime, sessions: Sessions): void {
  const how = runtime.checkpoint === undefined ? "the code that it has evaluated, to run it again" : "a whole image";
  const open = (
    args: ToolArguments,
    context: ToolContext,
  ): { session: Session; store: CheckpointStore; name: string } => {
    const session = sessions.get(callerKey(context.caller, "sessions"), sessionName(args));
    const name = (args["checkpoint"] as string | undefined) ?? session.name;
    if (!NAME.test(name)) throw new Error("The name of a checkpoint has 1 to 64 letters, digits, and _ - : .");
    return { session, name, store: new CheckpointStore(runtime, callerKey(context.caller, "sessions")) };
  };
  server.tool(
    "save-session",
    {
      description: `Save a session on disk: ${how}.`,
      annotations: { destructiveHint: false },
      ...toolInput(ARGUMENTS),
    },
    async (args: ToolArguments, context: ToolContext) => {
      const { session, store, name } = open(args, context);
      const saved = await store.save(session, name, context);
      session.checkpoint = name;
      return saved;
    },
  );
  server.tool(
    "restore-session",
    {
      description: "Replace the state of a session with one that save-session saved.",
      ...toolInput(ARGUMENTS),
    },
    async (args: ToolArguments, context: ToolContext) => {
      const { session, store, name } = open(args, context);
      const restored = await store.restore(session, name, context);
      session.checkpoint = name;
      return restored;
    },
  );
}

/** The checkpoints of one caller in one language. */
export class CheckpointStore {
  readonly #runtime: Runtime;
  readonly #folder: string;
  readonly #suffix: string;

  constructor(runtime: Runtime, owner: string) {
    this.#runtime = runtime;
    // The name of a principal may contain anything.
    const ownerFolder = owner === "" ? "all" : createHash("sha256").update(owner).digest("hex").slice(0, 32);
    this.#folder = join(stateDirectory(), "sessions", runtime.language, ownerFolder);
    this.#suffix = runtime.checkpoint === undefined ? ".json" : ".image";
  }

  async save(session: Session, name: string, context: ToolContext): Promise<string> {
    const file = this.#file(name);
    for (const path of [stateDirectory(), this.#folder]) await makePrivateDirectory(path);
    // Another session, also of another process, may save under the same name.
    const isCode = this.#runtime.checkpoint === undefined;
    const what = await replaceBy(
      file,
      (draft) => (isCode ? this.#saveCode(session, draft) : this.#saveImage(session, draft, context)),
      `${file}.${randomUUID()}${DRAFT}`,
    );
    const deleted = await this.#deleteOldest(name);
    const also = deleted.length === 0 ? "" : `\nDeleted the oldest: ${deleted.join(", ")}.`;
    return `Saved session ${session.name} as checkpoint ${name}: ${what}.${also}`;
  }

  async restore(session: Session, name: string, context: ToolContext): Promise<string> {
    const file = this.#file(name);
    if ((await sizeOf(file)) === undefined) {
      const names = (await this.list()).map((checkpoint) => checkpoint.name).join(", ");
      throw new Error(`There is no checkpoint ${name}; ${names === "" ? "none was saved" : `there are ${names}`}`);
    }
    if (this.#runtime.checkpoint === undefined) return this.#replay(session, name, context);
    await session.restore(file, context.signal).catch((error: unknown) => {
      const cause = `checkpoint ${name} could not be restored: ${errorMessage(error)}`;
      throw new Error(`Session ${session.name} is as it was, since ${cause}`, { cause: error });
    });
    return `Restored session ${session.name} from checkpoint ${name}.`;
  }

  async #saveImage(session: Session, draft: string, context: ToolContext): Promise<string> {
    const { ownFolder } = this.#runtime;
    // The name is random, so there is no such file outside the sandbox.
    const path = ownFolder === undefined ? draft : join(ownFolder, `checkpoint-${randomUUID()}`);
    const { outcome, reply, reason } = await session.run("save-session", { path }, { context });
    const { text: answer = "", isError } = reply as Partial<GuestText>;
    if (path !== draft && outcome === "answered" && isError !== true)
      await takeFile(await session.findPids(), path, draft, MAX_MB * 1024 * 1024);
    const mb = ((await sizeOf(draft)) ?? 0) / 1024 / 1024;
    if (outcome !== "answered" || isError === true || mb === 0 || mb > MAX_MB) {
      const tooLarge = mb > MAX_MB ? `its image has ${Math.round(mb)} MB, and ${MAX_MB} MB are the most` : undefined;
      throw new Error(
        `Session ${session.name} was not saved: ${tooLarge ?? reason ?? (answer === "" ? outcome : answer)}`,
      );
    }
    await chmod(draft, 0o600);
    return `an image of ${Math.ceil(mb)} MB`;
  }

  async #saveCode(session: Session, draft: string): Promise<string> {
    const entries = session.log.journal;
    if (entries === undefined) {
      throw new Error(`Session ${session.name} cannot be saved: it has evaluated too much code to run it all again`);
    }
    const failed = entries.flatMap((entry, index) => (entry.failed === true ? [index] : []));
    const text = JSON.stringify({ sources: entries.map(({ code }) => code), failed });
    await writeFile(draft, text, { flag: "wx", mode: 0o600, flush: true });
    return `the code of ${entries.length} ${entries.length === 1 ? "evaluation" : "evaluations"}, which restore-session runs again`;
  }

  /** Runs the code again in a new process. */
  async #replay(session: Session, name: string, context: ToolContext): Promise<string> {
    const entries = await this.#readCode(name);
    await session.end(undefined);
    const failed: string[] = [];
    let ran = 0;
    for (const { code, failed: hadFailed } of entries) {
      const { outcome, reply, state } = await session.run("eval", { code }, { context, isEvaluation: true });
      ran += 1;
      const hasFailed = outcome !== "answered" || reply["status"] !== "ok";
      if (outcome === "answered") session.log.record(code, hasFailed);
      if (hasFailed && hadFailed !== true) failed.push(code.split("\n", 1)[0]?.slice(0, 80) ?? "");
      if (state === "lost" || outcome === "refused" || outcome === "interrupted") break;
    }
    const left = entries.length - ran;
    return [
      `Restored session ${session.name} from checkpoint ${name}: the code of ${ran} ${ran === 1 ? "evaluation" : "evaluations"} was run again.`,
      ...failed.map((line) => `This failed: ${line}`),
      ...(left > 0 ? [`${left} more were not run.`] : []),
    ].join("\n");
  }

  async #readCode(name: string): Promise<readonly JournalEntry[]> {
    const file = this.#file(name);
    const isTooLarge = ((await sizeOf(file)) ?? 0) > MAX_CODE_MB * 1024 * 1024;
    let saved: unknown;
    try {
      saved = isTooLarge ? undefined : JSON.parse((await readPrivate(file)) ?? "");
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
    }
    const { sources, failed } = isObject(saved) ? saved : {};
    const isFailed = (index: number): boolean => Array.isArray(failed) && failed.includes(index);
    if (Array.isArray(sources) && sources.every((code) => typeof code === "string"))
      return sources.map((code, index) => ({ code, failed: isFailed(index) }));
    throw new Error(`Checkpoint ${name} is damaged: ${file} does not have the code of a session. Save it again`);
  }

  #file(name: string): string {
    return join(this.#folder, `${name}${this.#suffix}`);
  }

  /** The newest comes first. */
  async list(suffix: string = this.#suffix): Promise<readonly LiveCheckpoint[]> {
    const files = await readdir(this.#folder).catch(() => []);
    const saved = files.filter((file) => file.endsWith(suffix));
    const checkpoints = await Promise.all(
      saved.map(async (file) => {
        const { mtimeMs = 0, size = 0 } = (await stat(join(this.#folder, file)).catch(() => undefined)) ?? {};
        return { name: file.slice(0, -suffix.length), at: mtimeMs, bytes: size };
      }),
    );
    return checkpoints.toSorted((one, other) => other.at - one.at);
  }

  /** Also deletes drafts that were left. Returns the names of the checkpoints that were deleted. */
  async #deleteOldest(kept: string): Promise<readonly string[]> {
    const now = Date.now();
    const drafts = (await this.list(DRAFT)).filter(({ at }) => now - at > MAX_DRAFT_AGE_MS);
    await Promise.all(drafts.map(({ name }) => rm(join(this.#folder, `${name}${DRAFT}`), { force: true })));
    const others = (await this.list()).filter(({ name }) => name !== kept).slice(MAX_CHECKPOINTS - 1);
    await Promise.all(others.map(({ name }) => rm(this.#file(name), { force: true })));
    return others.map(({ name }) => name);
  }
}

/** Undefined if there is no such file. */
function sizeOf(path: string): Promise<number | undefined> {
  return stat(path).then(
    ({ size }) => size,
    () => undefined,
  );
}
