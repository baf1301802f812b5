// The transcript of a live session: who has evaluated what, what it prints while it runs, its values, and its error with
// frames, variables and restarts.

import { createContext, Fragment, type JSX } from "preact";
import { useContext, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Turn, TurnEnd } from "../../../src/console/types.ts";
import { Button } from "../kit/button.tsx";
import { Dialog } from "../kit/dialog.tsx";
import { clock, duration, shortSpan, whoText } from "../kit/format.ts";
import { inertString } from "../kit/inert.ts";
import { InertText } from "../kit/inert-text.tsx";
import { Dot, Tag } from "../kit/marks.tsx";
import { now } from "../state.ts";
import {
  can,
  conditionOf,
  frame,
  inspected,
  isAtEnd,
  isOfProcess,
  openTurn,
  session,
  takeRestart,
  turns,
  type Condition,
  type Frame,
  type Restart,
} from "./store.ts";

export function Transcript(): JSX.Element {
  const list = useRef<HTMLDivElement>(null);
  const shown = turns.value;
  useLayoutEffect(() => {
    const element = list.current;
    if (element !== null && isAtEnd.peek()) element.scrollTop = element.scrollHeight;
  }, [shown]);
  const onScroll = (): void => {
    const { scrollTop = 0, scrollHeight = 0, clientHeight = 0 } = list.current ?? {};
    isAtEnd.value = scrollTop + clientHeight > scrollHeight - 40;
  };
  return (
    <div class="transcript" role="log" aria-label="Transcript" tabIndex={0} ref={list} onScroll={onScroll}>
      {shown.length === 0 ? <p class="soft">Nothing was evaluated in this session so far.</p> : null}
      {shown.map((turn, at) => (
        <Fragment key={turn.turn}>
          {isInNewProcess(turn, shown[at - 1]) ? <p class="faint new-process">In a new process</p> : null}
          <TurnView turn={turn} isOpen={openTurn.value === turn.turn} />
        </Fragment>
      ))}
      <LastProcess turn={shown.at(-1)} />
    </div>
  );
}

/** What was defined before, and its handles, are gone then, unless they were restored. */
function isInNewProcess({ ended }: Turn, before: Turn | undefined): boolean {
  return ended !== undefined && before?.ended !== undefined && ended.process !== before.ended.process;
}

/** Says that the turns above are not those of the process that runs now. */
function LastProcess({ turn }: { readonly turn: Turn | undefined }): JSX.Element | null {
  if (turn?.ended === undefined || isOfProcess(turn.ended.process)) return null;
  const isStopped = session.value?.state === "stopped";
  return <p class="faint new-process">{isStopped ? "Its process has ended" : "In a new process"}</p>;
}

/** The process in which the turn has ended, which has its values. */
const ProcessOfTurn = createContext(0);

function TurnView({ turn, isOpen }: { readonly turn: Turn; readonly isOpen: boolean }): JSX.Element {
  const { at, client, ended, output } = turn;
  return (
    <div class="turn">
      <div class="bubble me">
        <div class="turn-head">
          {client === undefined ? null : (
            <b>
              <InertText text={whoText(client)} max={60} />
            </b>
          )}
          <span>{clock(at).slice(0, 8)}</span>
          {ended === undefined ? null : <span>{duration(tookMs(ended))}</span>}
        </div>
        <pre>
          <What turn={turn} />
        </pre>
      </div>
      {ended === undefined ? (
        <Running turn={turn} output={output} />
      ) : (
        <ProcessOfTurn.Provider value={ended.process}>
          <Ended end={ended} isOpen={isOpen} />
        </ProcessOfTurn.Provider>
      )}
    </div>
  );
}

/** The code; of another tool, its name with the arguments that matter. */
function What({ turn }: { readonly turn: Turn }): JSX.Element {
  const { op, code, args } = turn;
  if (args === undefined) return <InertText text={code} />;
  const { restart, value, frame: number, code: inner, ...others } = args;
  const words = [
    typeof restart === "string" ? restartName(turn, restart) : "",
    typeof value === "string" ? `with ${value}` : "",
    typeof number === "number" ? `frame ${number}` : "",
    Object.keys(others).length === 0 ? "" : JSON.stringify(others),
  ];
  return (
    <>
      <Tag>{op}</Tag> <InertText text={words.filter(Boolean).join(" ")} />
      {typeof inner === "string" ? <InertText text={`\n${inner}`} /> : null}
    </>
  );
}

/** The name of a restart that was taken by its number: that of the last error before. */
function restartName({ turn }: Turn, number: string): string {
  const before = turns.value.filter((one) => one.turn < turn);
  const error = before.map(({ ended }) => conditionOf(ended?.evaluation)).findLast((one) => one !== undefined);
  return error?.restarts[Number(number)]?.name ?? `restart ${number}`;
}

/** How long the code ran; without that, with the time in which its process started. */
function tookMs({ ms, evaluation }: TurnEnd): number {
  const timing = evaluation?.["timing"] as { readonly realMs?: number } | undefined;
  return timing?.realMs ?? ms;
}

function Running(props: { readonly turn: Turn; readonly output: string | undefined }): JSX.Element {
  const { output = "", turn } = props;
  const isFirst = turns.value.find(({ ended }) => ended === undefined)?.turn === turn.turn;
  const isStarting = session.value?.state === "starting";
  const what = isFirst ? (isStarting ? "The process is starting" : "Evaluating") : "Waiting for its turn";
  return (
    <div class="bubble">
      {output === "" ? null : (
        <pre>
          <InertText text={output} max={20_000} />
        </pre>
      )}
      <div class="row soft">
        <Dot tone="accent" shape="pulse" /> {what}, {shortSpan(now.value - turn.at)}
      </div>
    </div>
  );
}

const ENDINGS: Readonly<Record<string, string>> = {
  timeout: "Stopped: it ran longer than the session allows",
  interrupted: "Interrupted",
  lost: "Its process ended",
  refused: "It did not run",
};

function Ended({ end, isOpen }: { readonly end: TurnEnd; readonly isOpen: boolean }): JSX.Element {
  const { status, text, evaluation } = end;
  const ending = ENDINGS[status];
  const isBad = status !== "ok";
  if (evaluation === undefined) {
    return (
      <div class={isBad ? "bubble err" : "bubble"}>
        {ending === undefined ? null : <b class="bad">{ending}</b>}
        <pre>
          <InertText text={text} />
        </pre>
      </div>
    );
  }
  const field = (name: string): string => {
    const value = evaluation[name];
    return typeof value === "string" ? value : "";
  };
  const values = (evaluation["values"] as readonly string[] | undefined) ?? [];
  const handles = (evaluation["handles"] as readonly (number | null)[] | undefined) ?? [];
  const warnings = (evaluation["warnings"] as readonly { type: string; message: string }[] | undefined) ?? [];
  const condition = conditionOf(evaluation);
  return (
    <div class={isBad ? "bubble err" : "bubble"}>
      <Part label="Notice" tone="warn" text={field("notice")} />
      <Part label="In the background" text={field("background")} />
      <Part text={field("stdout")} />
      <Part label="stderr" tone="warn" text={field("stderr")} />
      {warnings.map(({ type, message }, at) => (
        <Part key={at} label={type} tone="warn" text={message} />
      ))}
      {ending === undefined ? null : <b class="bad">{ending}</b>}
      {condition === undefined ? null : (
        <Failure condition={condition} isOpen={isOpen} isNamed={ending !== undefined} />
      )}
      {values.map((value, at) => (
        <Value key={at} text={value} handle={handles[at] ?? undefined} />
      ))}
      {status === "ok" && values.length === 0 ? <span class="faint">No value</span> : null}
    </div>
  );
}

function Part(props: { readonly label?: string; readonly tone?: "warn"; readonly text: string }): JSX.Element | null {
  if (props.text === "") return null;
  return (
    <div class="part">
      {props.label === undefined ? null : <Tag {...(props.tone && { tone: props.tone })}>{props.label}</Tag>}
      <pre class="soft">
        <InertText text={props.text} max={10_000} />
      </pre>
    </div>
  );
}

function Value({ text, handle }: { readonly text: string; readonly handle: number | undefined }): JSX.Element {
  return (
    <div class="value">
      <pre>
        <span class="faint">⇒ </span>
        <InertText text={text} />
      </pre>
      {handle === undefined ? null : <Inspect handle={handle} text={text} what="the value" />}
    </div>
  );
}

function Inspect(props: { readonly handle: number; readonly text: string; readonly what: string }): JSX.Element | null {
  const id = session.value?.id;
  const process = useContext(ProcessOfTurn);
  if (id === undefined || !isOfProcess(process)) return null;
  const { handle, text, what } = props;
  return (
    <Button
      small
      label={`Inspect ${inertString(what)}`}
      onClick={() => (inspected.value = { session: id, process, handle, text })}
    >
      Inspect
    </Button>
  );
}

/** `isNamed`: what has ended the evaluation was said already. */
function Failure(props: {
  readonly condition: Condition;
  readonly isOpen: boolean;
  readonly isNamed: boolean;
}): JSX.Element {
  const { condition, isOpen, isNamed } = props;
  const { type, message, frames, restarts } = condition;
  const isTaken = isOpen && can("restart");
  return (
    <>
      {isNamed ? null : (
        <pre>
          <b class="bad">
            <InertText text={type} max={200} />
          </b>{" "}
          <InertText text={message} />
        </pre>
      )}
      {frames.length === 0 ? null : (
        <ol class="frames" aria-label="Frames">
          {frames.map((one) => (
            <FrameView key={one.number} one={one} isOpen={isOpen} />
          ))}
        </ol>
      )}
      {isTaken && restarts.length > 0 ? (
        <div class="row wrap restarts" role="group" aria-label="Restarts">
          {restarts.map((restart, at) => (
            <TakeRestart key={at} restart={restart} at={at} />
          ))}
        </div>
      ) : null}
    </>
  );
}

function FrameView({ one, isOpen }: { readonly one: Frame; readonly isOpen: boolean }): JSX.Element {
  const { number, text, locals = [] } = one;
  const [isShown, setIsShown] = useState(false);
  const isChosen = isOpen && frame.value?.number === number;
  return (
    <li class={isChosen ? "frame chosen" : "frame"}>
      <div class="frame-line">
        {locals.length === 0 ? (
          <pre>
            <span class="faint">{number}</span> <InertText text={text} max={400} />
          </pre>
        ) : (
          <button type="button" class="fold" aria-expanded={isShown} onClick={() => setIsShown(!isShown)}>
            <span class="faint" aria-hidden="true">
              {isShown ? "▾" : "▸"}
            </span>{" "}
            <span class="faint">{number}</span> <InertText text={text} max={400} />
          </button>
        )}
        {isOpen && can("frame") ? (
          <Button
            small
            pressed={isChosen}
            label={`Evaluate here, in frame ${number}`}
            onClick={() => {
              const turn = openTurn.peek();
              frame.value = isChosen || turn === undefined ? undefined : { turn, number };
              document.getElementById("evaluate")?.focus();
            }}
          >
            Evaluate here
          </Button>
        ) : null}
      </div>
      {isShown ? (
        <ul class="locals" aria-label={`Variables of frame ${number}`}>
          {locals.map(({ name, value, handle }, at) => (
            <li key={at} class="value">
              <pre>
                <span class="local-name">
                  <InertText text={name} max={100} />
                </span>{" "}
                = <InertText text={value} max={400} />
              </pre>
              {typeof handle === "number" ? <Inspect handle={handle} text={value} what={name} /> : null}
            </li>
          ))}
        </ul>
      ) : null}
    </li>
  );
}

/** A restart that may be given a value asks for it. */
function TakeRestart({ restart, at }: { readonly restart: Restart; readonly at: number }): JSX.Element {
  const [isAsking, setIsAsking] = useState(false);
  const { name, description, takesValue } = restart;
  const label = name ?? description;
  return (
    <>
      <Button
        small
        {...(at === 0 && { kind: "go" as const })}
        title={inertString(description)}
        onClick={() => (takesValue === true ? setIsAsking(true) : takeRestart(at))}
      >
        {inertString(label.slice(0, 60))}
        {takesValue === true ? "…" : ""}
      </Button>
      {isAsking ? <ValueDialog label={label} restart={restart} at={at} onClose={() => setIsAsking(false)} /> : null}
    </>
  );
}

function ValueDialog(props: {
  readonly label: string;
  readonly restart: Restart;
  readonly at: number;
  readonly onClose: () => void;
}): JSX.Element {
  const [value, setValue] = useState("");
  const input = useRef<HTMLTextAreaElement>(null);
  useEffect(() => input.current?.focus(), []);
  const take = (event: Event): void => {
    event.preventDefault();
    props.onClose();
    void takeRestart(props.at, value);
  };
  return (
    <Dialog label={`Take ${inertString(props.label)}`} heading onClose={props.onClose}>
      <form onSubmit={take} class="stack">
        <p class="soft">
          <InertText text={props.restart.description} max={400} />
        </p>
        <label class="stack">
          Code whose value it gets
          <textarea
            ref={input}
            rows={2}
            class="mono"
            value={value}
            onInput={(event) => setValue(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter" && !event.shiftKey && !event.isComposing) take(event);
            }}
          />
        </label>
        <div class="row">
          <Button kind="go" submit>
            Take it
          </Button>
          <Button onClick={props.onClose}>Cancel</Button>
        </div>
      </form>
    </Dialog>
  );
}
