// Small marks. Tag: a word in a frame, which may come from a server. Dot: a state, always beside words that say it. Empty: why there is nothing here,
// and what to do.

import type { ComponentChildren, JSX } from "preact";
import { InertText } from "./inert-text.tsx";

export type Tone = "ok" | "warn" | "bad" | "idle" | "accent";

export function Tag(props: {
  readonly tone?: Tone;
  readonly title?: string;
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <span class={props.tone === undefined ? "tag" : `tag ${props.tone}`} title={props.title}>
      {typeof props.children === "string" ? <InertText text={props.children} max={100} /> : props.children}
    </span>
  );
}

/** `hollow` is drawn as a ring, `pulse` moves: shapes say the state to those who do not see colours. */
export function Dot(props: { readonly tone: Tone; readonly shape?: "full" | "hollow" | "pulse" | "bar" }): JSX.Element {
  return <span class={`dot ${props.tone} ${props.shape ?? "full"}`} aria-hidden="true" />;
}

export function Empty(props: {
  readonly title: string;
  readonly action?: ComponentChildren;
  readonly children?: ComponentChildren;
}): JSX.Element {
  return (
    <div class="empty">
      <b>{props.title}</b>
      <div class="soft">{props.children}</div>
      {props.action === undefined ? null : <div class="empty-action">{props.action}</div>}
    </div>
  );
}
