// Dialog: a modal dialog. The browser keeps the focus inside, closes it on Escape, and gives the focus back.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

export interface DialogProps {
  /** Its accessible name, which is its heading too, unless `hasHeading` is false. */
  readonly label: string;
  readonly heading?: boolean;
  readonly class?: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

export function Dialog(props: DialogProps): JSX.Element {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = element.current;
    const before = document.activeElement;
    dialog?.showModal();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={element}
      class={`dialog ${props.class ?? ""}`}
      aria-label={props.label}
      onCancel={(event) => {
        event.preventDefault();
        props.onClose();
      }}
      onClick={(event) => {
        // A click on what is behind it has the dialog itself as its target.
        if (event.target === element.current) props.onClose();
      }}
    >
      {props.heading === true ? <h1 class="dialog-head">{props.label}</h1> : null}
      {props.children}
    </dialog>
  );
}
