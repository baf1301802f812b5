// The everything server and client as programs: the suite and the gateways under test start dozens of them. Also starts
// the server over HTTP.

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { compiled } from "../support/programs.ts";
import { WAIT_MS } from "../support/waiting.ts";

export const EVERYTHING_SERVER: string = compiled("everything-server.ts", import.meta.url);
export const EVERYTHING_CLIENT: string = compiled("everything-client.ts", import.meta.url);

export interface EverythingProcess {
  readonly url: string;
  /** Lines of stderr, except the one with the URL. */
  readonly stderrLines: readonly string[];
  /** Sends SIGTERM and resolves to the exit code, or to the signal that killed the process. */
  stop(): Promise<number | NodeJS.Signals | null>;
}

/** Starts the server over HTTP on a free port. */
export async function startEverything(...args: string[]): Promise<EverythingProcess> {
  const child = spawn(process.execPath, [EVERYTHING_SERVER, "--port", "0", ...args], {
    stdio: ["ignore", "inherit", "pipe"],
  });
  const stderrLines: string[] = [];
  try {
    const url = await readUrl(child, stderrLines);
    return { url, stderrLines, stop: () => stop(child) };
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  }
}

function readUrl(child: ChildProcess, stderrLines: string[]): Promise<string> {
  const { stderr } = child;
  if (stderr === null) throw new Error("The server has no stderr");
  return new Promise((resolve, reject) => {
    createInterface(stderr).on("line", (line) => {
      const [url] = /http:\S+/.exec(line) ?? [];
      if (url === undefined) stderrLines.push(line);
      else resolve(url);
    });
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`The server exited with ${code}:\n${stderrLines.join("\n")}`)));
  });
}

async function stop(child: ChildProcess): Promise<number | NodeJS.Signals | null> {
  if (child.exitCode === null && child.signalCode === null) {
    const exited = once(child, "exit");
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), WAIT_MS);
    await exited;
    clearTimeout(timer);
  }
  return child.exitCode ?? child.signalCode;
}
