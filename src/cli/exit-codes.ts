// What the exit code of a command says.

export const EXIT = { ok: 0, usage: 1, notFound: 2, auth: 3, unreachable: 4, toolFailed: 5, interrupted: 130 } as const;

/** The command line itself is wrong. */
export class UsageError extends Error {
  readonly exit: number = EXIT.usage;
}

/** What the command line names is not there. */
export class NotFoundError extends Error {
  readonly exit: number = EXIT.notFound;
}

/** An address cannot be reached, or not be listened on. */
export class UnreachableError extends Error {
  readonly exit: number = EXIT.unreachable;
}
