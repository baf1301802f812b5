// What the three servers of notes have in common and an MCP library has no part in: the notes, and texts.

import { deferred } from "../../../src/core/async.ts";

export const INFO = { name: "notes", version: "1.0.0" };
export const HINT = "Keep short notes here.";
export const STYLES = ["brief", "broad", "formal"];

export const CONFIRM = {
  mode: "form" as const,
  message: "Delete all notes?",
  requestedSchema: {
    type: "object" as const,
    properties: { sure: { type: "boolean" as const, title: "Yes, delete them" } },
    required: ["sure"],
  },
};

export const TITLE_QUESTION = {
  messages: [{ role: "user" as const, content: { type: "text" as const, text: "A title for the notes?" } }],
  maxTokens: 20,
};

export const uriOf = (id: string): string => `note:///${id}`;

export class NoteBook {
  readonly #notes = new Map([["1", "Read the manual."]]);
  #next = 2;
  readonly #waiting = deferred();
  readonly #abandoned = deferred();
  /** Resolves when a `wait` has begun. */
  readonly begun: Promise<void> = this.#waiting.promise;
  /** Resolves when a `wait` was cancelled. */
  readonly cancelled: Promise<void> = this.#abandoned.promise;

  get ids(): readonly string[] {
    return [...this.#notes.keys()];
  }

  add(text: string): string {
    const id = String(this.#next++);
    this.#notes.set(id, text);
    return id;
  }

  has(id: string): boolean {
    return this.#notes.has(id);
  }

  read(id: string): string {
    const text = this.#notes.get(id);
    if (text === undefined) throw new Error(this.unknown(id));
    return text;
  }

  change(id: string, text: string): void {
    this.#notes.set(id, text);
  }

  delete(id: string): void {
    if (!this.#notes.delete(id)) throw new Error(this.unknown(id));
  }

  clear(): readonly string[] {
    const { ids } = this;
    this.#notes.clear();
    return ids;
  }

  unknown(id: string): string {
    return `There is no note ${id}; there are ${this.ids.join(", ")}`;
  }

  summary(style: string): string {
    return `A ${style} summary: ${[...this.#notes.values()].join(" ")}`;
  }

  waiting(): void {
    this.#waiting.resolve();
  }

  abandoned(): string {
    this.#abandoned.resolve();
    return "cancelled";
  }
}
