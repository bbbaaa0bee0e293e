/**
 * The timeline of a job in the short form that its row stores: a letter for each event and the milliseconds since the
 * job was added, as in `e523l530d`. An event without a number happened at the same time as the event before it. The
 * first event, that the job was queued, is not stored. This form takes a tenth of the space of full names and times.
 */

/** Letter of each event in a timeline. */
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

/**
 * Name of an event of a job. `read`, `settled`, `encoded`, `linked` and `reasoned`: a step ended. `done`: the job ended
 * successfully. `failed`: an attempt failed, and another follows. `dead`: the job failed for good. `crashed`: its
 * worker died. `requeued`: a change of its memory sent it back to the step `encode` or `link`. `retried`: a caller
 * queued it again. `cancelled`: a caller cancelled it, or its memory was erased.
 */
export type JobEvent = keyof typeof LETTERS;

const EVENTS = new Map(Object.entries(LETTERS).map(([event, letter]) => [letter as string, event]));

/**
 * Greatest length of a timeline to which an event is appended, in characters; of a longer one the end remains, which
 * has 150 events or more. Each change of a memory whose job cannot end adds one, and rewrites the row with all others.
 */
const MAX_TIMELINE = 2_000;
/** SQL for the last 2,000 characters of the column `timeline`. */
const LAST_EVENTS = `CASE WHEN length(timeline) > ${MAX_TIMELINE}
  THEN substr(timeline, length(timeline) - ${MAX_TIMELINE - 1}) ELSE timeline END`;

/**
 * Returns the SQL assignment, for the SET of an UPDATE of `jobs`, that appends events of one time to the timeline, of
 * which it keeps the last 2,000 characters.
 * @param now the SQL parameter for that time (Unix ms), which occurs once in the assignment
 */
export function noteEvents([first, ...others]: readonly [JobEvent, ...JobEvent[]], now: '?' | ':now' = '?'): string {
  const letters = others.map((event) => LETTERS[event]).join('');
  return `timeline = ${LAST_EVENTS} || '${LETTERS[first]}' || CAST(${now} - created_at AS INTEGER) || '${letters}'`;
}

/**
 * Decodes a timeline into events with their times (Unix ms), in the order in which they were stored. The first is
 * `queued` at `createdAt`.
 * @param createdAt time at which the job was added, Unix ms
 */
export function readEvents(timeline: string, createdAt: number): { readonly event: string; readonly at: number }[] {
  let at = createdAt;
  // The first event of a timeline whose beginning was left out may lack its letter or its time.
  const whole = timeline.slice(timeline.search(/[a-z]-?\d/));
  const noted = [...whole.matchAll(/([a-z])(-?\d*)/g)].map(([, letter, later]) => {
    if (later !== '') at = createdAt + Number(later);
    return { event: EVENTS.get(letter!)!, at };
  });
  return [{ event: 'queued', at: createdAt }, ...noted];
}
