// A program of bench/programs in a child process that reports its cost on request (see report-cost.js).

import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

export interface Cost {
  readonly cpuMs: number;
  readonly rssMb: number;
  readonly peakMb: number;
}

/** The path of a file in bench/programs. */
export function programPath(name: string): string {
  return fileURLToPath(new URL(`programs/${name}`, import.meta.url));
}

export class MeasuredServer {
  readonly child: ChildProcess;
  readonly url: string;
  /** A link to its console, if it has one. */
  readonly console: string | undefined;

  private constructor(child: ChildProcess, url: string, console?: string) {
    this.child = child;
    this.url = url;
    this.console = console;
  }

  /** Starts a server over HTTP, which sends its URL first. */
  static async start(program: string, args: readonly string[] = []): Promise<MeasuredServer> {
    const child = forkMeasured(program, args, "ignore");
    const started = await nextMessage<{ readonly url: string; readonly console?: string }>(child, program);
    return new MeasuredServer(child, started.url, started.console);
  }

  /** Starts a program over stdio. `env` is added to the environment. */
  static startStdio(program: string, args: readonly string[] = [], env: NodeJS.ProcessEnv = {}): MeasuredServer {
    return new MeasuredServer(forkMeasured(program, args, "pipe", env), program);
  }

  async cost(): Promise<Cost> {
    return this.ask<Cost>("cost");
  }

  async ask<T>(message: string | object): Promise<T> {
    const answered = nextMessage<T>(this.child, this.url);
    this.child.send(message);
    return answered;
  }

  async stop(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const exited = once(this.child, "exit");
    this.child.kill("SIGKILL");
    await exited;
  }
}

/** Without the TypeScript loader of this process: the child is measured as it would run by itself. */
function forkMeasured(
  program: string,
  args: readonly string[],
  streams: "ignore" | "pipe",
  env: NodeJS.ProcessEnv = {},
): ChildProcess {
  return fork(programPath(program), args, {
    execArgv: ["--no-warnings", "--import", new URL("programs/report-cost.js", import.meta.url).href],
    stdio: [streams, streams, "inherit", "ipc"],
    env: { ...process.env, ...env },
  });
}

/** The next message of a child process. Rejects where it exits instead. */
async function nextMessage<T>(child: ChildProcess, name: string): Promise<T> {
  const done = new AbortController();
  const exited = once(child, "exit", { signal: done.signal }).then(([code]) => {
    throw new Error(`${name} exited with ${String(code)}`);
  });
  try {
    const [message] = (await Promise.race([once(child, "message", { signal: done.signal }), exited])) as [T];
    return message;
  } finally {
    done.abort();
    exited.catch(() => undefined);
  }
}
