// A timer that is only housekeeping must not keep a process alive. Where timers are numbers, as in browsers and
// workers, they never do, and there is nothing to call.

export function unref<Timer>(timer: Timer): Timer {
  (timer as { unref?: () => void }).unref?.();
  return timer;
}
