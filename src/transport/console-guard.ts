// While a server speaks on the process's own stdout, a stray console.log would break its stream of
// messages: what the console would print there goes to stderr instead. Only the console is diverted: who
// calls process.stdout.write means it, and programs started with inherited output are beyond us.

/** All that the console prints on stdout goes through one of these. */
const METHODS = ["log", "info", "debug", "dir", "dirxml"] as const;

/** Returns the way back. A method that somebody else has replaced meanwhile stays theirs. */
export function divertConsole(): () => void {
  const originals = METHODS.map((name) => [name, console[name]] as const);
  const { error } = console;
  // `dir` takes options after its value; all others format their arguments as `error` does.
  const diverted = (...values: unknown[]): void => error.apply(console, values);
  const divertedDir = (value: unknown): void => error.call(console, "%O", value);
  for (const name of METHODS) console[name] = name === "dir" ? divertedDir : diverted;
  return () => {
    for (const [name, original] of originals) {
      if (console[name] === diverted || console[name] === divertedDir) console[name] = original as () => void;
    }
  };
}
