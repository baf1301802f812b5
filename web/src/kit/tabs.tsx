// Tabs: a list of tabs and the panel of the one that is chosen. Arrow keys move between tabs.

import type { ComponentChildren, JSX } from "preact";
import { useId, useRef } from "preact/hooks";

export interface Tab<Name extends string> {
  readonly name: Name;
  /** What is written on it, if not the name. */
  readonly label?: string;
  /** A count beside the label, not part of its accessible name. */
  readonly count?: number;
}

export interface TabsProps<Name extends string> {
  readonly label: string;
  readonly tabs: readonly Tab<Name>[];
  readonly chosen: Name;
  readonly onChoose: (name: Name) => void;
  /** The panel of the chosen tab. */
  readonly children: ComponentChildren;
}

export function Tabs<Name extends string>(props: TabsProps<Name>): JSX.Element {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const { tabs, chosen } = props;
  const onKey = (event: KeyboardEvent): void => {
    const at = tabs.findIndex(({ name }) => name === chosen);
    const targets: Readonly<Record<string, number>> = {
      ArrowRight: (at + 1) % tabs.length,
      ArrowLeft: (at - 1 + tabs.length) % tabs.length,
      Home: 0,
      End: tabs.length - 1,
    };
    const target = targets[event.key];
    const tab = target === undefined ? undefined : tabs[target];
    if (tab === undefined || target === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    props.onChoose(tab.name);
    const buttons = list.current?.querySelectorAll("button");
    buttons?.[target]?.focus();
  };
  return (
    <div class="tabs-all">
      <div class="tabs" role="tablist" aria-label={props.label} ref={list} onKeyDown={onKey}>
        {tabs.map(({ name, label, count }) => (
          <button
            key={name}
            type="button"
            role="tab"
            id={`${id}-${name}`}
            aria-selected={name === chosen}
            aria-controls={name === chosen ? `${id}-panel` : undefined}
            aria-label={label ?? name}
            tabIndex={name === chosen ? 0 : -1}
            onClick={() => props.onChoose(name)}
          >
            {label ?? name}
            {count === undefined ? null : <span class="faint"> {count}</span>}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${chosen}`} tabIndex={0} class="tab-panel">
        {props.children}
      </div>
    </div>
  );
}
