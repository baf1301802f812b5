// Compiles the everything server and client to JavaScript, once before the tests: the suite and the gateways under test
// start dozens of them, and compiling at every start would take too long. Also starts the server over HTTP.

import { execFile, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFile, symlink, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const execute = promisify(execFile);

const HERE = fileURLToPath(new URL(".", import.meta.url));
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** The outDir of tsconfig.json. */
const COMPILED = join(ROOT, "node_modules/.cache/catenary-everything");

export const EVERYTHING_SERVER: string = join(COMPILED, "test/conformance/everything-server.js");
export const EVERYTHING_CLIENT: string = join(COMPILED, "test/conformance/everything-client.js");

export async function compileEverything(): Promise<void> {
  await execute(process.execPath, [join(ROOT, "node_modules/typescript/bin/tsc"), "-p", HERE]);
  // Imports of "catenary" resolve to the build, as they do in the package itself.
  const { name, type, exports } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8")) as Record<
    string,
    unknown
  >;
  await writeFile(join(COMPILED, "package.json"), JSON.stringify({ name, type, exports }));
  // Relative, so that it survives a move of the checkout. It may exist already, from an earlier or a simultaneous run.
  await symlink(relative(COMPILED, join(ROOT, "dist")), join(COMPILED, "dist")).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    },
  );
}

/** How long the server may take to exit before it is killed. */
const EXIT_TIMEOUT_MS = 5_000;

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
    const timer = setTimeout(() => child.kill("SIGKILL"), EXIT_TIMEOUT_MS);
    await exited;
    clearTimeout(timer);
  }
  return child.exitCode ?? child.signalCode;
}
