// A set whose members come and go thousands of times a second. When V8 rebuilds the table of a Set, the old table still
// points to the new one. An old table that has survived a minor collection keeps every later member in memory until the
// next full collection. So the whole set is replaced by a copy now and then.

const MAX_DELETIONS = 256;

export class ChurningSet<T> {
  #members = new Set<T>();
  #deletions = 0;

  get size(): number {
    return this.#members.size;
  }

  add(member: T): void {
    this.#members.add(member);
  }

  has(member: T): boolean {
    return this.#members.has(member);
  }

  delete(member: T): void {
    if (!this.#members.delete(member)) return;
    this.#deletions += 1;
    // A large set is copied less often.
    if (this.#deletions < MAX_DELETIONS + this.#members.size) return;
    this.#deletions = 0;
    this.#members = new Set(this.#members);
  }

  clear(): void {
    this.#members = new Set();
  }

  /** A copy of the members, in the order in which they were added. */
  all(): T[] {
    return [...this.#members];
  }
}
