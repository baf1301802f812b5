// Reads an OpenAPI document from a file or a URL, and has it converted in a thread of its own: a document may come from
// someone else, and must not stop everything in this process. The thread has a deadline and a limit on its memory.

import { existsSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { abortable } from "../core/async.ts";
import { packageFile, readBounded } from "../core/files.ts";
import { followSameOrigin } from "../http/client/redirects.ts";
import { type Converted, type ConvertOptions, convert, convertText } from "./convert.ts";
import { checkDocument, isUrl, type Json, MAX_DOCUMENT_BYTES, shownSource } from "./document.ts";

const FETCH_TIMEOUT_MS = 30_000;
/** How long a document may take to be converted. 13 MB take about 3 s. */
const CONVERT_TIMEOUT_MS = 60_000;
/** How much memory that may take. */
const CONVERT_MB = 1_024;

/** What the thread gets. */
export interface Conversion {
  readonly text: string;
  readonly source: string;
  readonly options: ConvertOptions;
}

/** Rejects with an error that names the document and says what is wrong with it. */
export async function loadOperations(
  options: ConvertOptions & { readonly document: string | Json },
  signal: AbortSignal,
  timeoutMs: number = CONVERT_TIMEOUT_MS,
): Promise<Converted> {
  const { document, baseUrl, include, exclude, headers, auth, outputSchemas } = options;
  const convertOptions: ConvertOptions = { baseUrl, include, exclude, headers, auth, outputSchemas };
  // An object is of the program or config itself.
  if (typeof document !== "string") return convert(checkDocument(document, "The document", undefined), convertOptions);
  const text = isUrl(document) ? await fetchText(document) : await readText(document);
  return abortable(signal, convertInThread({ text, source: document, options: convertOptions }, signal, timeoutMs));
}

async function readText(path: string): Promise<string> {
  try {
    return (await readBounded(path, MAX_DOCUMENT_BYTES)).toString();
  } catch (error) {
    throw cannotRead(path, error);
  }
}

function cannotRead(path: string, error: unknown): Error {
  const { code } = error as NodeJS.ErrnoException;
  return code === undefined && error instanceof Error
    ? error
    : new Error(`Cannot read ${path}: ${code ?? "not a file"}`, { cause: error });
}

async function fetchText(source: string): Promise<string> {
  const { nodeRequester } = await import("../http/client/node-requester.ts");
  const requester = followSameOrigin(nodeRequester());
  const accept = "application/json, application/yaml, text/yaml, */*";
  const signal = AbortSignal.timeout(FETCH_TIMEOUT_MS);
  try {
    const response = await requester({ method: "GET", url: new URL(source), headers: { accept }, signal });
    if (response.status === 200) return await response.text(MAX_DOCUMENT_BYTES);
    response.discard();
    throw new Error(`Cannot read ${shownSource(source)}: HTTP ${response.status}`);
  } finally {
    requester.close();
  }
}

async function convertInThread(conversion: Conversion, signal: AbortSignal, timeoutMs: number): Promise<Converted> {
  const file = packageFile("dist/openapi/worker.js");
  const { text, source, options } = conversion;
  // A bundle has no file for the thread.
  if (!existsSync(file)) return convertText(text, source, options);
  const name = shownSource(source);
  const resourceLimits = { maxOldGenerationSizeMb: CONVERT_MB };
  const worker = new Worker(file, { workerData: conversion, resourceLimits, execArgv: [] });
  const end = (): void => void worker.terminate();
  let timer: NodeJS.Timeout | undefined;
  signal.addEventListener("abort", end);
  try {
    return await new Promise<Converted>((resolve, reject) => {
      timer = setTimeout(() => {
        reject(new Error(`${name} took more than ${timeoutMs / 1000} s to convert, and is not used`));
      }, timeoutMs);
      worker.once("message", ({ converted, problem }: { converted?: Converted; problem?: string }) => {
        if (converted === undefined) reject(new Error(problem));
        else resolve(converted);
      });
      worker.once("error", (error: NodeJS.ErrnoException) => {
        const isMemory = error.code === "ERR_WORKER_OUT_OF_MEMORY";
        const why = isMemory ? `it needs more than ${CONVERT_MB} MB of memory` : error.message;
        reject(new Error(`${name} cannot be converted: ${why}`, { cause: error }));
      });
      worker.once("exit", () => reject(new Error(`${name} cannot be converted: its thread has ended`)));
    });
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", end);
    end();
  }
}
