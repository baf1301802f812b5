// `ordering: "sequential"`: work requests are taken one at a time and answered in the order in which they
// came. Everything that keeps the dialogue alive stays outside: responses and notifications never wait,
// and a ping waits only while the request before it is young, so that a stuck call cannot hide that we live.

const PING_GRACE_MS = 100;

export class Sequence {
  #tail: Promise<void> = Promise.resolve();

  /** Runs the work when all that came before it is done. */
  enqueue(work: () => Promise<void>): Promise<void> {
    const turn = this.#tail.then(work);
    this.#tail = turn.catch(() => undefined);
    return turn;
  }

  /** Its turn, or a short grace, whichever is first. */
  async enqueuePing(work: () => Promise<void>): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const grace = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, PING_GRACE_MS);
    });
    await Promise.race([this.#tail, grace]);
    clearTimeout(timer);
    await work();
  }
}
