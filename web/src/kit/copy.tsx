// CopyButton: copies a text, and says that it did.

import type { JSX } from "preact";
import { say } from "../state.ts";
import { Button } from "./button.tsx";

export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    say("Copied.");
  } catch {
    say("The browser does not allow this page to copy. Select the text instead.", true);
  }
}

export function CopyButton(props: { readonly text: string; readonly children?: string }): JSX.Element {
  return (
    <Button small onClick={() => copyText(props.text)}>
      {props.children ?? "Copy"}
    </Button>
  );
}
