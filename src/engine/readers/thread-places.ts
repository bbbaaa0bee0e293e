import type { ReadCommandName } from './commands.ts';
import type { QueuedRead } from './fair-queue.ts';

/** A read that may be given to a thread. */
interface PlacedRead extends QueuedRead {
  readonly name: ReadCommandName;
  /** Time at which a thread was given the read, by `performance.now()`. */
  readonly sentAt: number;
}

/** Decides which reads (commands that read a tenant's file) the threads of a process may run at the same time. */
export interface ThreadPlaces {
  /** Records that a read was requested. If it is short, one thread is kept free of other keys' long reads for 10 s. */
  note(read: PlacedRead): void;
  /** Tells whether an idle thread may run the read while other threads work on the reads `working`. */
  hasRoom(read: PlacedRead, working: readonly PlacedRead[]): boolean;
  /** Tells whether the read is short enough to be given to a thread that still works on another read. */
  isQuick(read: PlacedRead): boolean;
  /** Tells whether a thread that works on this read is likely to finish it soon. */
  endsSoon(read: PlacedRead): boolean;
}

/** Commands that may take a hundred times as long as a query, whichever key calls them. */
const LONG_READS: ReadonlySet<ReadCommandName> = new Set<ReadCommandName>([
  'explain',
  'askEval',
  'learnWeights',
  'compareStanding',
  'replayLogged',
  'readRecalls',
  'startExport',
  'readExportSlice',
  'judgeImport',
  'diff',
  'userGraph',
  'listNamespaces',
  'previewDecay',
  'readNearDuplicates',
  'readProposals',
  'proposeConsolidations',
]);
/** Commands that take so much memory that a process runs one of them at a time, whichever tenant it is of. */
const ALONE: ReadonlySet<ReadCommandName> = new Set<ReadCommandName>(['learnWeights']);
/**
 * Greatest expected time (ms) of a read that is given to a thread which still works on another one. Giving it early
 * saves a message's way to the thread and back, which takes long while this thread is busy.
 */
const QUICK_MS = 25;
/** Expected time above which a read counts as long (ms), learned from earlier reads of the same API key. */
const LONG_MS = 100;
/** Time for which one thread is kept free of long reads after an API key has requested a short one (ms). */
const KEPT_FREE_MS = 10_000;

/**
 * Creates the rules for `threads` threads. If there are several, long reads leave one of them free: those of
 * `LONG_READS` always, others while another key has requested a short read within the last 10 s. So short reads do not
 * wait for long ones, and a key that is alone has all threads for its queries.
 * @param clock returns a time in ms that never goes back, comparable with `sentAt`
 */
export function createThreadPlaces(threads: number, clock: () => number = () => performance.now()): ThreadPlaces {
  const mostLong = Math.max(1, threads - 1);
  /** The last two API keys that requested a short read, each with the time; the latest comes first. */
  let short: readonly { readonly path: string; readonly key: string; readonly at: number }[] = [];

  const isLong = ({ name, cost }: PlacedRead) => LONG_READS.has(name) || cost.expectedMs > LONG_MS;
  const isQuick = ({ name, cost }: PlacedRead) => !LONG_READS.has(name) && cost.expectedMs <= QUICK_MS;
  const isSame = (one: { readonly path: string; readonly key: string }, { path, key }: PlacedRead) =>
    one.path === path && one.key === key;
  const othersAskShort = (read: PlacedRead) =>
    short.some((one) => !isSame(one, read) && clock() - one.at < KEPT_FREE_MS);

  return {
    note(read) {
      if (isLong(read)) return;
      const { path, key } = read;
      short = [{ path, key, at: clock() }, ...short.filter((one) => !isSame(one, read))].slice(0, 2);
    },
    hasRoom(read, working) {
      if (ALONE.has(read.name) && working.some(({ name }) => name === read.name)) return false;
      if (!isLong(read)) return true;
      const long = working.filter(isLong).length;
      return long < mostLong || (!LONG_READS.has(read.name) && long < threads && !othersAskShort(read));
    },
    isQuick,
    endsSoon: (read) => isQuick(read) && clock() - read.sentAt < QUICK_MS,
  };
}
