/** Time for which an answer is given again (ms), from the call that reads it. */
const RECENT_MS = 100;

/**
 * Wraps a function so that an answer, or a failure, is given again for a tenth of a second from its call, instead of
 * being read for each call. It is for what anyone may ask as often as they like, such as the probes of load balancers.
 * @param read reads the answer about an object, such as the engine of a process; an answer is kept for each of them
 */
export function recentAnswer<Of extends object, Answer>(
  read: (of: Of) => Promise<Answer>,
): (of: Of) => Promise<Answer> {
  const known = new WeakMap<Of, { readonly answer: Promise<Answer>; readonly readAt: number }>();
  return (of) => {
    const last = known.get(of);
    const now = performance.now();
    if (last !== undefined && now - last.readAt < RECENT_MS) return last.answer;
    const answer = read(of);
    known.set(of, { answer, readAt: now });
    return answer;
  };
}
