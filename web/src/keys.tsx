// The dialog with the keys of all pages, which `?` opens. docs/how-to/console.md has the same table.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { Button } from "./kit/button.tsx";
import { Dialog } from "./kit/dialog.tsx";

const KEYS: readonly (readonly [where: string, key: string, what: string])[] = [
  ["All pages", "Ctrl-K", "Finds pages, servers, tools, calls and actions"],
  ["All pages", "?", "Shows the keys"],
  ["Traffic", "/", "Goes to the filter; Escape leaves it"],
  ["Traffic", "↑ ↓, or k j", "Another call"],
  ["Traffic", "← →", "Hides or shows what is below a call"],
  ["Traffic", "Enter, Escape", "Opens a call, and goes to it; closes it"],
  ["Traffic", "Space", "Pauses the list, and goes on"],
  ["Live, prompt", "Enter, Shift-Enter", "Evaluates; a new line"],
  ["Live, prompt", "Tab, ↑ ↓", "Completes; earlier code"],
  ["Live, prompt", "Escape, then Tab", "Leaves the prompt"],
];

export const areKeysShown = signal(false);

/** Shows the keys on `?`, but not in a field, where it is a character. */
export function useKeysKey(): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const { target } = event;
      if (event.key !== "?" || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      const isField = target instanceof HTMLElement && /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
      if (isField || document.querySelector("dialog[open]") !== null) return;
      event.preventDefault();
      areKeysShown.value = true;
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}

export function Keys(): JSX.Element | null {
  if (!areKeysShown.value) return null;
  const close = (): void => {
    areKeysShown.value = false;
  };
  return (
    <Dialog label="Keys" heading onClose={close}>
      <table class="keys">
        <thead class="unseen">
          <tr>
            <th scope="col">Where</th>
            <th scope="col">Key</th>
            <th scope="col">What it does</th>
          </tr>
        </thead>
        <tbody>
          {KEYS.map(([where, key, what], index) => (
            <tr key={`${where} ${key}`}>
              <td class="soft">{KEYS[index - 1]?.[0] === where ? <span class="unseen">{where}</span> : where}</td>
              <td>
                <kbd>{key}</kbd>
              </td>
              <td>{what}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <div class="row dialog-foot">
        <Button onClick={close}>Close</Button>
      </div>
    </Dialog>
  );
}
