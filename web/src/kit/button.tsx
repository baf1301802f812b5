// Button: `go` is the one main action of a place, `danger` changes what cannot be changed back. While the promise that
// `onClick` returns is pending, it cannot be pressed again.

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";

export interface ButtonProps {
  readonly kind?: "plain" | "go" | "danger";
  readonly small?: boolean;
  readonly disabled?: boolean;
  /** If the words on it are not enough. */
  readonly label?: string;
  readonly title?: string | undefined;
  readonly pressed?: boolean;
  readonly expanded?: boolean;
  readonly submit?: boolean;
  readonly class?: string;
  readonly onClick?: (event: MouseEvent) => unknown;
  readonly children: ComponentChildren;
}

export function Button(props: ButtonProps): JSX.Element {
  const [isBusy, setIsBusy] = useState(false);
  const onClick = (event: MouseEvent): void => {
    const answer = isBusy ? undefined : props.onClick?.(event);
    if (!(answer instanceof Promise)) return;
    setIsBusy(true);
    void answer.finally(() => setIsBusy(false));
  };
  const classes = ["button", props.kind ?? "plain", props.small === true ? "small" : "", props.class ?? ""];
  return (
    <button
      type={props.submit === true ? "submit" : "button"}
      class={classes.filter(Boolean).join(" ")}
      disabled={props.disabled === true}
      aria-busy={isBusy ? "true" : undefined}
      aria-label={props.label}
      aria-pressed={props.pressed}
      aria-expanded={props.expanded}
      title={props.title}
      onClick={onClick}
    >
      {props.children}
    </button>
  );
}
