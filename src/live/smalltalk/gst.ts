// GNU Smalltalk as an engine of Smalltalk sessions: finds the program, starts it with the guest's sources (the guest-*.st
// files of this folder), and encodes requests in a form that takes few lines to read in Smalltalk. A saved image starts
// with the same sources, so it always runs the guest of this release.

import { resolve } from "node:path";
import { ConnectionError } from "../../core/errors.ts";
import { packageFile } from "../../core/files.ts";
import { defined, isObject } from "../../core/values.ts";
import { findProgram as lookUp } from "../../process/spawn-error.ts";
import type { GuestCommand, GuestRequest, Limits, Runtime } from "../runtime.ts";
import type { SmalltalkGuestOptions } from "./engine.ts";
import { methodPiece, parseSource, type Piece } from "./gst-source.ts";

export interface GstRuntime extends Runtime {
  readonly checkpoint: { start(limits: Limits, file: string): Promise<GuestCommand> };
}

const INSTALL =
  "install it or give its path (Debian 11: apt-get install gnu-smalltalk; macOS: brew install gnu-smalltalk)";

/** The guest's sources in the order in which they are loaded. The last one starts it. */
const SOURCES = ["channel", "print", "evaluate", "tools", "main"].map(sourceFile);
/** Loaded by the guest, when its code may call tools. */
const CALLS = sourceFile("calls");

function sourceFile(name: string): string {
  return packageFile(`src/live/smalltalk/guest-${name}.st`);
}

export function gstRuntime({
  command = "gst",
  image: own,
  env,
  inheritEnv,
  cwd,
}: SmalltalkGuestOptions = {}): GstRuntime {
  const start = async ({ memoryMb }: Limits, image?: string): Promise<GuestCommand> => ({
    command: await findProgram(command, `This session needs GNU Smalltalk; ${INSTALL}`, env?.["PATH"]),
    args: [...(image === undefined ? [] : ["--image", image]), "--quiet", "--no-user-files", ...SOURCES],
    env: { ...env, CATENARY_MEMORY_MB: String(memoryMb) },
    reads: [...SOURCES, CALLS, ...(image === undefined ? [] : [image])],
    ...defined({ inheritEnv, cwd }),
  });
  return {
    language: "smalltalk",
    stopSteps: ["interrupt", "renew"],
    encode: encodeRequest,
    start: (limits) => start(limits, own === undefined ? undefined : resolve(cwd ?? ".", own)),
    checkpoint: { start },
  };
}

/** Rejects with a ConnectionError that has the advice if the program is not found. */
export async function findProgram(
  command: string,
  advice: string,
  path: string = process.env["PATH"] ?? "",
): Promise<string> {
  const file = await lookUp({ command, env: { PATH: path } });
  if (file !== undefined) return file;
  const problem = command.includes("/") ? "is not an executable file" : "is not on the PATH";
  throw new ConnectionError("spawn", `${command} ${problem}. ${advice}`, { mayHaveRun: false });
}

export function encodeRequest(request: GuestRequest): string {
  const { id, op, call, tools, result, error } = request;
  if (op === "call-result") return encodeParts({ id, op, call, value: encodeJson(defined({ result, error })) }, []);
  if (op === "set-tools") return encodeParts({ id, op, file: CALLS, value: encodeJson(tools) }, []);
  return encodeParts(request, piecesOf(request));
}

/** Encodes JSON for the reader of guest-calls.st: a letter for the kind, then sizes and numbers that end with `;`. */
function encodeJson(value: unknown): string {
  if (typeof value === "string") return `s${sized(value)}`;
  if (typeof value === "number") return Number.isSafeInteger(value) ? `i${value};` : encodeFloat(value);
  if (typeof value === "boolean") return value ? "t" : "f";
  if (Array.isArray(value)) return `a${value.length};${value.map(encodeJson).join("")}`;
  if (!isObject(value)) return "n";
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `o${members.length};${members.map(([name, member]) => sized(name) + encodeJson(member)).join("")}`;
}

function sized(text: string): string {
  return `${Buffer.byteLength(text)};${text}`;
}

/** The 53 bits of the number in two halves, and the power of two by which they are multiplied. */
function encodeFloat(value: number): string {
  const bits = new DataView(new ArrayBuffer(8));
  bits.setFloat64(0, value);
  const top = bits.getUint32(0);
  const exponent = (top >>> 20) & 0x7ff;
  const low = bits.getUint32(4);
  const mantissa = (exponent === 0 ? 0 : 2 ** 52) + (top & 0xfffff) * 2 ** 32 + low;
  const sign = value < 0 ? "-" : "";
  const half = 2 ** 26;
  return `d${sign}${Math.floor(mantissa / half)};${sign}${mantissa % half};${Math.max(exponent, 1) - 1075};`;
}

/** Encodes a request as parts: name, space, number of bytes, newline, bytes. Code is sent as pieces (gst-source.ts). */
export function encodeParts(request: GuestRequest, pieces: readonly Piece[]): string {
  let text = "";
  for (const [name, value] of Object.entries(request)) text += part(name, value);
  for (const piece of pieces) {
    const parts = Object.entries(piece).map(([key, value]) => part(key, value));
    text += part("piece", parts.join(""));
  }
  return text;
}

function piecesOf({ op, code, value, class: owner, source, protocol }: GuestRequest): readonly Piece[] {
  if (op === "eval" || op === "evaluate-in-frame") return parseSource(String(code));
  if (op === "take-restart" && typeof value === "string") return parseSource(value);
  if (op !== "compile-method") return [];
  return [methodPiece(String(owner), String(source), 1, typeof protocol === "string" ? protocol : undefined)];
}

/** The fields of an object become parts with its name before theirs. Absent values are left out. */
function part(name: string, value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "object")
    return Object.entries(value)
      .map(([key, field]) => part(`${name}.${key}`, field))
      .join("");
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return `${name} ${Buffer.byteLength(text)}\n${text}`;
}
