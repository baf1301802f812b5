// The log of one server, as it grows, with what is wrong and what to do above it.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { LogLine } from "../../../src/console/types.ts";
import { get, reasonOf } from "../api.ts";
import { follow } from "../feed.ts";
import { Button } from "../kit/button.tsx";
import { Dialog } from "../kit/dialog.tsx";
import { clock } from "../kit/format.ts";
import { InertText } from "../kit/inert-text.tsx";
import { restart } from "../palette.tsx";
import { typed } from "../state.ts";

const MAX_LINES = 300;

export function LogDialog(props: {
  readonly server: string;
  readonly label: string;
  readonly text?: string | undefined;
  readonly hint?: string | undefined;
  readonly onClose: () => void;
}): JSX.Element {
  const { server, text, hint } = props;
  const { lines, problem } = useLog(server);
  return (
    <Dialog label={props.label} heading class="wide" onClose={props.onClose}>
      {text === undefined ? null : (
        <p>
          <InertText text={text} />
        </p>
      )}
      {hint === undefined ? null : (
        <p class="hint">
          <b>What to do:</b> <InertText text={typed(hint)} />
        </p>
      )}
      <div class="log mono" tabIndex={0} role="log" aria-label={`Log of ${server}`}>
        {lines.map((line, index) => (
          <div key={index} class={`log-line is-${line.level}`}>
            <span class="faint">{clock(Date.parse(line.time))}</span>{" "}
            {line.stream === undefined ? null : <span class="faint">{line.stream} </span>}
            <InertText text={line.message} max={1000} />
          </div>
        ))}
        {lines.length === 0 ? <span class="soft">{problem ?? "It has written nothing."}</span> : null}
      </div>
      <div class="row dialog-foot">
        <Button kind="go" onClick={() => restart(server)}>
          Restart
        </Button>
        <Button onClick={props.onClose}>Close</Button>
      </div>
    </Dialog>
  );
}

/** The last lines, and new ones as they come. */
function useLog(server: string): { readonly lines: readonly LogLine[]; readonly problem: string | undefined } {
  const [lines, setLines] = useState<readonly LogLine[]>([]);
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    const stop = new AbortController();
    get<{ readonly entries: readonly LogLine[] }>("logs", { server }, stop.signal).then(
      ({ entries }) => setLines(entries.slice(-MAX_LINES)),
      (error: unknown) => stop.signal.aborted || setProblem(reasonOf(error)),
    );
    const unfollow = follow("log", (entries) => {
      const own = entries.filter(({ upstream }) => upstream === server);
      if (own.length > 0) setLines((known) => [...known, ...own].slice(-MAX_LINES));
    });
    return () => {
      stop.abort();
      unfollow();
    };
  }, [server]);
  return { lines, problem };
}
