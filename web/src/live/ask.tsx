// What the page asks before it acts: whether a session shall lose its state, and the name of a checkpoint.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Button } from "../kit/button.tsx";
import { Dialog } from "../kit/dialog.tsx";
import { reset, restore, save } from "./store.ts";

export function AskReset(props: { readonly title: string; readonly onClose: () => void }): JSX.Element {
  const run = (): Promise<void> => {
    props.onClose();
    return reset();
  };
  return (
    <Dialog label={`Reset ${props.title}?`} heading onClose={props.onClose}>
      <p class="soft">Its process ends, also for the clients that use it. All that is defined in it is lost.</p>
      <div class="row">
        <Button kind="danger" onClick={run}>
          Reset session
        </Button>
        <Button onClick={props.onClose}>Cancel</Button>
      </div>
    </Dialog>
  );
}

export function AskRestore(props: { readonly name: string; readonly onClose: () => void }): JSX.Element {
  const run = (): Promise<void> => {
    props.onClose();
    return restore(props.name);
  };
  return (
    <Dialog label={`Restore ${props.name}?`} heading onClose={props.onClose}>
      <p class="soft">The checkpoint replaces the state of the session, also for the clients that use it.</p>
      <div class="row">
        <Button kind="danger" onClick={run}>
          Restore checkpoint
        </Button>
        <Button onClick={props.onClose}>Cancel</Button>
      </div>
    </Dialog>
  );
}

export function AskName(props: { readonly name: string; readonly onClose: () => void }): JSX.Element {
  const [name, setName] = useState(props.name);
  const run = (event: Event): void => {
    event.preventDefault();
    props.onClose();
    void save(name.trim());
  };
  return (
    <Dialog label="Save a checkpoint" heading onClose={props.onClose}>
      <form class="stack" onSubmit={run}>
        <label class="stack">
          Name
          <input
            value={name}
            pattern="[A-Za-z0-9_.:\-]{1,64}"
            title="Letters, digits, _ - : ."
            required
            onFocus={(event) => event.currentTarget.select()}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </label>
        <div class="row">
          <Button kind="go" submit>
            Save
          </Button>
          <Button onClick={props.onClose}>Cancel</Button>
        </div>
      </form>
    </Dialog>
  );
}
