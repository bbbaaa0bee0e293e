/**
 * What happened to a job, as its row keeps it: a letter an event and how many ms after the job was made, `e523l530d`; without a number, at
 * the same time as the event before. That it was queued when it was made goes without saying. A tenth of what names and times take.
 */
const LETTERS = {
  read: 'r',
  settled: 's',
  encoded: 'e',
  linked: 'l',
  reasoned: 'a',
  done: 'd',
  failed: 'f',
  dead: 'x',
  crashed: 'c',
  cancelled: 'n',
  requeued: 'q',
  retried: 't',
} as const;

export type JobEvent = keyof typeof LETTERS;

const EVENTS = new Map(Object.entries(LETTERS).map(([event, letter]) => [letter as string, event]));

/** SQL that notes one event, and such as follow at once. @param now the parameter that says when (Unix ms) */
export function noteEvents([first, ...others]: readonly [JobEvent, ...JobEvent[]], now: '?' | ':now' = '?'): string {
  const letters = others.map((event) => LETTERS[event]).join('');
  return `timeline = timeline || '${LETTERS[first]}' || CAST(${now} - created_at AS INTEGER) || '${letters}'`;
}

/** @param createdAt when the job was made (Unix ms), as the times of its events are */
export function readEvents(timeline: string, createdAt: number): { readonly event: string; readonly at: number }[] {
  let at = createdAt;
  const noted = [...timeline.matchAll(/([a-z])(-?\d*)/g)].map(([, letter, later]) => {
    if (later !== '') at = createdAt + Number(later);
    return { event: EVENTS.get(letter!)!, at };
  });
  return [{ event: 'queued', at: createdAt }, ...noted];
}
