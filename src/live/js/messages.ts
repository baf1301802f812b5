// What the two threads of a guest say to each other: the controller, which has the channel to the host, and the main
// thread, in which the user's code runs. Texts and numbers only: whatever the user's code does to the main thread, the
// controller makes of them what the host is told.

import type { Declared } from "./rewrite.ts";
import type { SyntaxPlace } from "./print.ts";

/** Code that has been rewritten, ready to be run. */
export interface Cell {
  /** As the places in it are named, such as `<eval 3>`. */
  readonly name: string;
  readonly code: string;
  readonly hoisted?: string;
  readonly isAsync: boolean;
  readonly lineOffset: number;
  readonly hasValue: boolean;
  readonly declared: readonly Declared[];
  /** It speaks of modules in TypeScript. */
  readonly importsTypeScript: boolean;
}

export interface Printing {
  readonly printLength: number;
  readonly printLevel: number;
  readonly maxOutput: number;
}

export interface Job extends Printing {
  readonly kind: "job";
  readonly id: number;
  readonly op: string;
  readonly cell?: Cell;
  /** The arguments of a tool. */
  readonly params: Readonly<Record<string, unknown>>;
}

export type ToMain =
  | Job
  /** Whoever answers is idle; the run named, if it still waits for something, is over. */
  | { readonly kind: "ask"; readonly token: number; readonly abandon?: number }
  /** Something was terminated: what it left behind is to be put in order. */
  | { readonly kind: "heal" };

export interface Thrown {
  readonly type: string;
  readonly message: string;
  readonly stack: string;
  /** Where the text that it is about cannot be read. */
  readonly place?: SyntaxPlace;
  /** It could not even be compiled. */
  readonly isUncompiled?: boolean;
}

export interface Done {
  readonly kind: "done";
  readonly id: number;
  /** Printed; undefined where there is none. */
  readonly value?: string;
  readonly thrown?: Thrown;
  /** Names that it declares, and had not come to when it failed. */
  readonly gone?: readonly string[];
  readonly realMs: number;
  readonly runMs: number;
  /** What a tool found. */
  readonly found?: unknown;
}

export type ToController =
  | { readonly kind: "ready" }
  | Done
  | { readonly kind: "here"; readonly token: number; readonly resources: readonly string[] }
  | { readonly kind: "uncaught"; readonly text: string };
