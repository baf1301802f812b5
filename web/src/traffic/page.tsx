// The page Traffic: the calls as they come, and the detail of one of them.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import "./traffic.css";
import { Button } from "../kit/button.tsx";
import { count } from "../kit/format.ts";
import { Empty } from "../kit/marks.tsx";
import { isPaletteOpen } from "../palette.tsx";
import { go, hrefOf, place } from "../router.ts";
import { typed } from "../state.ts";
import { Detail, queryNow } from "./detail.tsx";
import { FilterBox } from "./filter-box.tsx";
import { CallList } from "./list.tsx";
import { isUnfolded, type Entry } from "./rows.ts";
import {
  drawn,
  filterError,
  filterMs,
  fold,
  isPaused,
  loading,
  missed,
  pause,
  rows,
  startCalls,
  useFilterText,
  view,
} from "./store.ts";

/** The row that the keys have reached. */
const cursor = signal<number | undefined>(undefined);

export function Page(): JSX.Element {
  const { path, query } = place.value;
  const filter = query.get("filter") ?? "";
  const id = /^\d+$/.test(path[0] ?? "") ? Number(path[0]) : undefined;
  useEffect(startCalls, []);
  useEffect(() => useFilterText(filter), [filter]);
  useKeys(id);
  void drawn.value;
  const at = id ?? cursor.value;
  const chosen = at === undefined ? -1 : view.indexOf(rows.get(at));
  const open = (entry: Entry): void => {
    if (entry.row.id === id) return focusDetail();
    cursor.value = entry.row.id;
    go(hrefOf("traffic", [entry.row.id], queryNow()), { replace: id !== undefined, isMove: true });
  };
  const choose = (entry: Entry): void => {
    cursor.value = entry.row.id;
    if (id !== undefined) open(entry);
  };
  return (
    <div class={id === undefined ? "traffic" : "traffic has-detail"}>
      <div class="page-head">
        <h1>Traffic</h1>
        <FilterBox />
        <Count />
        <Button small pressed={isPaused.value} onClick={() => pause(!isPaused.value)}>
          {isPaused.value ? "Paused" : "Pause"}
        </Button>
      </div>
      <div class={id === undefined ? "" : "split"}>
        <div class="panel calls">
          <CallList chosen={chosen} onChoose={choose} onOpen={open} />
          {view.lines.length === 0 ? <Nothing /> : null}
        </div>
        {id === undefined ? null : <Detail id={id} onClose={close} />}
      </div>
    </div>
  );
}

/** Its heading, from which the rest of the detail is reached. */
function focusDetail(): void {
  document.querySelector<HTMLElement>(".call-head")?.focus();
}

function close(): void {
  go(hrefOf("traffic", [], queryNow()));
  document.querySelector<HTMLElement>(".vtable")?.focus();
}

function Count(): JSX.Element {
  void drawn.value;
  const all = rows.roots.length;
  const text = isPaused.value
    ? `${count(missed.value)} new`
    : view.isFiltered
      ? `${count(view.countCalls())} of ${count(all)}`
      : count(all);
  return (
    <span
      class="soft num calls-count"
      title={
        loading.value === "before"
          ? "Older calls are still read"
          : `Calls of clients, without what is nested under them; filtered in ${Math.round(filterMs.value)} ms`
      }
    >
      {text}
      {loading.value === "before" ? " …" : ""}
    </span>
  );
}

function Nothing(): JSX.Element | null {
  if (rows.size > 0 && view.isFiltered) {
    return (
      <Empty
        title="No call matches"
        action={<Button onClick={() => go(hrefOf("traffic"), { replace: true })}>Show all calls</Button>}
      >
        None of the last {count(rows.roots.length)} calls has what the{" "}
        {filterError.value === undefined ? "" : "rest of the "}
        filter asks for. New ones appear when they come.
      </Empty>
    );
  }
  if (loading.value === "first") return null;
  return (
    <Empty title="No calls yet">
      Calls of clients appear here while they run.{" "}
      <a class="link" href={hrefOf("tools")}>
        Make one here
      </a>
      , or in a terminal: <code>{typed("catenary call")}</code>.
    </Empty>
  );
}

/** Keys of the whole page, unless a field has the focus. */
function useKeys(id: number | undefined): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const { target } = event;
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isPaletteOpen.peek()) return;
      const element = target instanceof HTMLElement ? target : undefined;
      if (element !== undefined && /^(?:INPUT|TEXTAREA|SELECT)$/.test(element.tagName)) return;
      if (event.key === "/") document.getElementById("filter")?.focus();
      else if (event.key === "Escape" && id !== undefined) close();
      else if (event.key === " " && !/^(?:BUTTON|SUMMARY|A)$/.test(element?.tagName ?? "")) pause(!isPaused.peek());
      else if (/^(?:ArrowLeft|ArrowRight)$/.test(event.key))
        foldChosen(id ?? cursor.peek(), event.key === "ArrowRight");
      else if (/^(?:ArrowDown|ArrowUp|[jk])$/.test(event.key) && !isElsewhere(element)) moveFrom(event.key);
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [id]);
}

/** Whether the keys of the list have another meaning there. */
function isElsewhere(element: HTMLElement | undefined): boolean {
  return element !== undefined && element.closest("[role=tablist], [role=tabpanel], .vtable, dialog") !== null;
}

/** Gives the list the focus, and the key. */
function moveFrom(key: string): void {
  const list = document.querySelector<HTMLElement>(".vtable");
  list?.focus();
  list?.dispatchEvent(new KeyboardEvent("keydown", { key }));
}

function foldChosen(id: number | undefined, isOpen: boolean): void {
  const entry = id === undefined ? undefined : rows.get(id);
  if (entry?.nested !== undefined && isUnfolded(entry) !== isOpen) fold(entry, isOpen);
}
