// The inspector: walks a value by its handle. Each part that was not printed whole opens in place, a page at a time.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { LiveInspection } from "../../../src/console/types.ts";
import { get, reasonOf, segment } from "../api.ts";
import { Button } from "../kit/button.tsx";
import { InertText } from "../kit/inert-text.tsx";
import { inspected } from "./store.ts";

const PAGE = 50;

export function Inspector(): JSX.Element {
  const shown = inspected.value;
  return (
    <section aria-label="Inspector" onKeyDown={moveAmongParts}>
      <div class="row side-head">
        <h2 class="grow">Inspector</h2>
        {shown === undefined ? null : (
          <Button small label="Close the inspector" onClick={() => (inspected.value = undefined)}>
            Close
          </Button>
        )}
      </div>
      {shown === undefined ? (
        <p class="faint">
          A value or a variable that is not shown whole in the transcript has a button, Inspect, to walk through its
          parts.
        </p>
      ) : (
        <Parts
          key={`${shown.session} ${shown.process} ${shown.handle}`}
          session={shown.session}
          handle={shown.handle}
          isRoot
        />
      )}
    </section>
  );
}

interface Loaded {
  readonly text: string;
  readonly isError?: boolean;
  readonly parts: NonNullable<LiveInspection["parts"]>;
  readonly total: number;
}

/** The parts of one value. */
function Parts(props: { readonly session: string; readonly handle: number; readonly isRoot?: boolean }): JSX.Element {
  const { session, handle } = props;
  const [loaded, setLoaded] = useState<Loaded>();
  const load = async (before: Loaded | undefined): Promise<void> => {
    const start = before?.parts.length ?? 0;
    try {
      const path = `live/${segment(session)}/inspect`;
      const { text, isError, parts = [], total = 0 } = await get<LiveInspection>(path, { handle, start, count: PAGE });
      setLoaded({ text, ...(isError === true && { isError }), parts: [...(before?.parts ?? []), ...parts], total });
    } catch (error) {
      setLoaded({ text: reasonOf(error), isError: true, parts: before?.parts ?? [], total: before?.total ?? 0 });
    }
  };
  useEffect(() => void load(undefined), [session, handle]);
  if (loaded === undefined) return <p class="faint">Looking…</p>;
  const { text, isError, parts, total } = loaded;
  return (
    <>
      {props.isRoot === true || isError === true || total === 0 ? (
        <pre class={isError === true ? "bad" : "soft"}>
          <InertText text={text} max={2000} />
        </pre>
      ) : null}
      {parts.length === 0 ? null : (
        <ul class="parts">
          {parts.map(({ name, text: value, handle: inner }, at) => (
            <PartView key={at} session={session} name={name} text={value} handle={inner} />
          ))}
        </ul>
      )}
      {parts.length < total && isError !== true ? (
        <Button small onClick={() => load(loaded)}>
          {(total - parts.length).toLocaleString("en")} more
        </Button>
      ) : null}
    </>
  );
}

function PartView(props: {
  readonly session: string;
  readonly name: string;
  readonly text: string;
  readonly handle: number | undefined;
}): JSX.Element {
  const { session, name, text, handle } = props;
  const [isOpen, setIsOpen] = useState(false);
  const line = (
    <>
      <span class="part-name">
        <InertText text={name} max={100} />
      </span>{" "}
      <InertText text={text} max={300} />
    </>
  );
  if (handle === undefined) {
    return (
      <li>
        <pre class="leaf">{line}</pre>
      </li>
    );
  }
  return (
    <li>
      <button
        type="button"
        class="fold"
        aria-expanded={isOpen}
        onClick={() => setIsOpen(!isOpen)}
        onKeyDown={({ key }) => {
          if (key === "ArrowRight") setIsOpen(true);
          if (key === "ArrowLeft") setIsOpen(false);
        }}
      >
        <span class="faint" aria-hidden="true">
          {isOpen ? "▾" : "▸"}
        </span>{" "}
        {line}
      </button>
      {isOpen ? <Parts session={session} handle={handle} /> : null}
    </li>
  );
}

/** Arrow keys move among what can be opened. */
function moveAmongParts(event: KeyboardEvent & { readonly currentTarget: HTMLElement }): void {
  const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  if (step === 0) return;
  const buttons = [...event.currentTarget.querySelectorAll<HTMLElement>("button.fold")];
  const at = buttons.indexOf(document.activeElement as HTMLElement);
  const next = at === -1 ? undefined : buttons[at + step];
  if (next === undefined) return;
  event.preventDefault();
  next.focus();
}
