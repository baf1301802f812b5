// The textbox `Evaluate`: Enter runs, Shift Enter is a new line, Tab completes from the session, Up and Down walk through
// what was evaluated before. Tab completes only after a word, and Escape makes the next Tab move on, so that nobody is
// caught in it.

import type { JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { LiveCompletion } from "../../../src/console/types.ts";
import { get, segment } from "../api.ts";
import { Button } from "../kit/button.tsx";
import { InertText } from "../kit/inert-text.tsx";
import { say } from "../state.ts";
import { code, evaluate, frame, session, turns } from "./store.ts";

interface Offer extends LiveCompletion {
  readonly chosen: number;
}

/** Ends in something that a language could complete. */
const AFTER_WORD = /[\p{L}\p{N}_$.:*+\-/?!&%<>=]$/u;
const MAX_ROWS = 12;

export function Prompt(): JSX.Element {
  const box = useRef<HTMLTextAreaElement>(null);
  const list = useRef<HTMLUListElement>(null);
  const id = useId();
  const [offer, setOffer] = useState<Offer>();
  /** How many evaluations back the text is from, and what was typed before. */
  const past = useRef<{ readonly back: number; readonly typed: string }>({ back: 0, typed: "" });
  const leaves = useRef(false);
  const asked = useRef(0);

  useEffect(() => {
    setOffer(undefined);
    past.current = { back: 0, typed: "" };
  }, [session.value?.id]);
  useEffect(() => list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }), [offer]);

  const put = (text: string, caret = text.length): void => {
    code.value = text;
    // After the value is in the box.
    setTimeout(() => box.current?.setSelectionRange(caret, caret));
  };
  const run = (): void => {
    const source = code.peek();
    if (source.trim() === "") return;
    code.value = "";
    setOffer(undefined);
    past.current = { back: 0, typed: "" };
    void evaluate(source);
  };
  const accept = ({ start, values, chosen }: Offer): void => {
    const value = values[chosen];
    const caret = box.current?.selectionStart ?? 0;
    const text = code.peek();
    setOffer(undefined);
    if (value !== undefined) put(`${text.slice(0, start)}${value}${text.slice(caret)}`, start + value.length);
  };
  const complete = async (isTyped: boolean): Promise<void> => {
    const at = box.current?.selectionStart ?? 0;
    const shown = session.peek();
    if (shown === undefined) return;
    asked.current += 1;
    const number = asked.current;
    const text = code.peek();
    const found = await get<LiveCompletion>(`live/${segment(shown.id)}/complete`, { code: text, at }).catch(
      () => undefined,
    );
    if (number !== asked.current || code.peek() !== text) return;
    const { start = at, values = [] } = found ?? {};
    if (values.length === 0) {
      setOffer(undefined);
      if (!isTyped)
        say(shown.state === "idle" ? "Nothing to complete." : "The session can complete only when it is idle.");
    } else if (values.length === 1 && !isTyped) accept({ start, values, chosen: 0 });
    else setOffer({ start, values, chosen: 0 });
  };
  const walk = (step: 1 | -1): boolean => {
    const all = turns.peek().flatMap(({ op, code: source }) => (op === "eval" ? [source] : []));
    const distinct = all.filter((source, at) => source !== all[at + 1]);
    const { back, typed } = past.current;
    const next = back + step;
    if (next < 0 || next > distinct.length) return false;
    past.current = { back: next, typed: back === 0 ? code.peek() : typed };
    put(next === 0 ? past.current.typed : (distinct.at(-next) ?? ""));
    return true;
  };

  const onKey = (event: KeyboardEvent & { readonly currentTarget: HTMLTextAreaElement }): void => {
    if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    const { value, selectionStart, selectionEnd } = event.currentTarget;
    const { key, shiftKey } = event;
    const stop = (): void => {
      event.preventDefault();
      event.stopPropagation();
    };
    const isLeaving = leaves.current;
    leaves.current = false;
    if (offer !== undefined) {
      const { length } = offer.values;
      if (key === "ArrowDown" || key === "ArrowUp") {
        stop();
        const step = key === "ArrowDown" ? 1 : length - 1;
        return setOffer({ ...offer, chosen: (offer.chosen + step) % length });
      }
      if ((key === "Enter" || key === "Tab") && !shiftKey) {
        stop();
        return accept(offer);
      }
      if (key === "Escape") {
        stop();
        leaves.current = true;
        return setOffer(undefined);
      }
    }
    if (key === "Escape") leaves.current = true;
    if (key === "Enter" && !shiftKey) {
      stop();
      return run();
    }
    const before = value.slice(0, selectionStart);
    const hasNoSelection = selectionStart === selectionEnd;
    if (key === "Tab" && !shiftKey && !isLeaving && hasNoSelection && AFTER_WORD.test(before)) {
      stop();
      return void complete(false);
    }
    if (key === "ArrowUp" && hasNoSelection && !before.includes("\n") && walk(1)) stop();
    if (key === "ArrowDown" && hasNoSelection && !value.slice(selectionEnd).includes("\n") && walk(-1)) stop();
  };
  const onInput = (event: { readonly currentTarget: HTMLTextAreaElement }): void => {
    code.value = event.currentTarget.value;
    past.current = { back: 0, typed: "" };
    // What is typed while completions are shown narrows them.
    if (offer !== undefined) void complete(true);
  };

  const rows = Math.min(MAX_ROWS, Math.max(2, code.value.split("\n").length));
  const option = (at: number): string => `${id}-${at}`;
  return (
    <div class="prompt">
      {frame.value === undefined ? null : (
        <div class="row soft">
          <span class="grow">In frame {frame.value.number} of the open error</span>
          <Button small onClick={() => (frame.value = undefined)}>
            Leave the frame
          </Button>
        </div>
      )}
      <div class="prompt-row">
        <textarea
          id="evaluate"
          ref={box}
          class="mono"
          rows={rows}
          aria-label="Evaluate"
          aria-describedby={`${id}-help`}
          aria-autocomplete="list"
          aria-controls={offer === undefined ? undefined : `${id}-list`}
          aria-activedescendant={offer === undefined ? undefined : option(offer.chosen)}
          placeholder="Evaluate in this session"
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          value={code.value}
          onInput={onInput}
          onKeyDown={onKey}
          onBlur={() => setOffer(undefined)}
        />
        <Button kind="go" onClick={run} disabled={code.value.trim() === ""}>
          Run
        </Button>
      </div>
      {offer === undefined ? null : (
        <ul class="offer" role="listbox" aria-label="Completions" id={`${id}-list`} ref={list} tabIndex={0}>
          {offer.values.slice(0, 100).map((value, at) => (
            <li
              key={at}
              id={option(at)}
              role="option"
              aria-selected={at === offer.chosen}
              // Pressed, not clicked: a click would take the focus from the box first.
              onMouseDown={(event) => {
                event.preventDefault();
                accept({ ...offer, chosen: at });
              }}
            >
              <InertText text={value} max={120} />
            </li>
          ))}
        </ul>
      )}
      <div class="faint help" id={`${id}-help`}>
        Enter runs it, Shift Enter is a new line, Tab completes, ↑ ↓ earlier code. Escape, then Tab moves on.
      </div>
    </div>
  );
}
