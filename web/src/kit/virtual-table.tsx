// VirtualTable: a table of any number of rows, of which only those in sight are drawn. The rows are not copied: it asks
// for each by its index, and draws again when `version` changes. Keys: arrows or j and k, Page Up and Down, Home, End,
// Enter opens. With `follows`, it stays at its end while rows are added there, until a person scrolls away.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

export interface Column<Row> {
  readonly name: string;
  readonly class?: string;
  readonly draw: (row: Row) => ComponentChildren;
}

export interface VirtualTableProps<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly count: number;
  readonly rowAt: (index: number) => Row;
  readonly keyOf: (row: Row) => number | string;
  /** Changes when rows have changed. */
  readonly version: number;
  readonly rowHeight?: number;
  readonly rowClass?: (row: Row) => string;
  /** The index of the chosen row, or -1. It comes into sight when it changes. */
  readonly chosen: number;
  readonly onChoose: (index: number) => void;
  readonly onOpen: (index: number) => void;
  readonly follows?: boolean;
  /** How many rows have gone at the beginning: what is in sight stays there when it changes. */
  readonly base?: number;
  /** When it changes, the chosen row comes into sight again. */
  readonly reveal?: unknown;
  /** Called with the rows in sight before they are drawn, for what is drawn in relation to them. */
  readonly beforeDraw?: (from: number, to: number) => void;
}

const HEAD = 28;
const SPARE = 4;
/** More than fit on a screen. */
const SLOTS = 256;

export function VirtualTable<Row>(props: VirtualTableProps<Row>): JSX.Element {
  const { count, rowHeight = 31, chosen } = props;
  const box = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(props.follows === true);
  const [view, setView] = useState({ top: 0, height: 600 });
  const base = props.base ?? 0;
  const lastBase = useRef(base);
  // What will be in sight is known before the browser has scrolled there, so the rows are drawn once.
  const end = Math.max(0, HEAD + count * rowHeight - view.height);
  const moved = base - lastBase.current;
  const top = isAtEnd.current ? end : Math.max(0, Math.min(end, view.top - moved * rowHeight));
  const first = Math.min(count, Math.floor(top / rowHeight));
  const from = Math.max(0, first - SPARE);
  const to = Math.min(count, Math.ceil((top + view.height) / rowHeight) + SPARE);

  const measure = (): void => {
    const element = box.current;
    if (element === null) return;
    const { scrollTop: top, clientHeight: height } = element;
    isAtEnd.current = props.follows === true && top >= HEAD + count * rowHeight - height - rowHeight;
    if (top !== view.top || height !== view.height) setView({ top, height });
  };
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  });
  useLayoutEffect(() => {
    lastBase.current = base;
    const element = box.current;
    if (element === null || (!isAtEnd.current && moved === 0)) return;
    element.scrollTop = top;
    view.top = top;
  }, [count, props.version]);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null || chosen < 0) return;
    const top = chosen * rowHeight;
    if (top < element.scrollTop) element.scrollTop = top;
    const bottom = top + rowHeight + HEAD - element.clientHeight;
    if (bottom > element.scrollTop) element.scrollTop = bottom;
    measure();
  }, [chosen < 0 ? undefined : props.keyOf(props.rowAt(chosen)), props.reveal]);

  const onKey = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = targetOf(event.key, chosen, count, Math.max(1, Math.floor(view.height / rowHeight) - 2));
    if (target !== undefined && count > 0) props.onChoose(target);
    else if (event.key === "Enter" && chosen >= 0) props.onOpen(chosen);
    else return;
    event.preventDefault();
  };
  props.beforeDraw?.(first, Math.min(count, Math.ceil((top + view.height - HEAD) / rowHeight)));
  const rows: JSX.Element[] = [];
  for (let index = from; index < to; index++) {
    const row = props.rowAt(index);
    rows.push(
      <div
        // The elements of rows that have gone are used for those that come.
        key={(index + base + SLOTS * 1e9) % SLOTS}
        role="row"
        aria-rowindex={index + 2}
        aria-current={index === chosen ? "true" : undefined}
        class={`vrow ${index === chosen ? "chosen " : ""}${props.rowClass?.(row) ?? ""}`}
        style={{ top: `${index * rowHeight}px` }}
        onClick={() => {
          props.onChoose(index);
          props.onOpen(index);
        }}
      >
        {props.columns.map((column) => (
          <div key={column.name} role="cell" class={`vcell ${column.class ?? ""}`}>
            {column.draw(row)}
          </div>
        ))}
      </div>,
    );
  }
  return (
    // The rows are reached by the keys of the box: one that scrolls out of sight is not there to have the focus. They are
    // no elements of a table, whose layout would take ten times as long.
    <div
      class="vtable"
      ref={box}
      tabIndex={0}
      role="group"
      aria-label={`${props.label}, list`}
      onScroll={measure}
      onKeyDown={onKey}
    >
      <div role="table" aria-label={props.label} aria-rowcount={count + 1}>
        <div role="rowgroup" class="vhead">
          <div role="row" aria-rowindex={1} class="vrow">
            {props.columns.map(({ name, class: className }) => (
              <div key={name} role="columnheader" class={`vcell ${className ?? ""}`}>
                {name}
              </div>
            ))}
          </div>
        </div>
        <div role="rowgroup" class="vbody" style={{ height: `${count * rowHeight}px` }}>
          {rows}
        </div>
      </div>
    </div>
  );
}

function targetOf(key: string, chosen: number, count: number, page: number): number | undefined {
  const moves: Readonly<Record<string, number>> = {
    ArrowDown: 1,
    j: 1,
    ArrowUp: -1,
    k: -1,
    PageDown: page,
    PageUp: -page,
    Home: -count,
    End: count,
  };
  const move = moves[key];
  if (move === undefined) return undefined;
  const start = chosen < 0 ? (move > 0 && key !== "End" ? -1 : count) : chosen;
  return Math.max(0, Math.min(count - 1, start + move));
}
