import type { ReadCommandName } from './commands.ts';
import type { QueuedRead } from './fair-queue.ts';

/** A read that may get a place on a thread. */
interface PlacedRead extends QueuedRead {
  readonly name: ReadCommandName;
  /** Time at which a thread was given the read, as `performance.now()`. */
  readonly sentAt: number;
}

/** Which reads the threads of a process may work on together. */
export interface ThreadPlaces {
  /** Notes that a read was asked for. */
  note(read: PlacedRead): void;
  /** Whether an idle thread may run the read while others work on the reads `working`. */
  hasRoom(read: PlacedRead, working: readonly PlacedRead[]): boolean;
  /** Whether the read may be handed to a thread that has another one to end first. */
  isQuick(read: PlacedRead): boolean;
  /** Whether a thread that has this read is likely to end it at once. */
  endsSoon(read: PlacedRead): boolean;
}

/** Reads that may take a hundred times as long as a query, whoever asks. */
const LONG_READS: ReadonlySet<ReadCommandName> = new Set<ReadCommandName>([
  'explain',
  'learnWeights',
  'compareStanding',
  'replayKept',
  'startExport',
  'readExportSlice',
  'judgeImport',
  'diff',
  'userGraph',
  'previewDecay',
  'readNearDuplicates',
  'readProposals',
]);
/**
 * Longest time that a read may be expected to take which is handed to a thread that still has another (ms). This saves
 * the way to the thread and back, which is long while this thread works.
 */
const QUICK_MS = 25;
/** Time from which on a read is long by what its key's reads took (ms). */
const LONG_MS = 100;
/** Time for which a thread is kept free for a key that asked something short (ms). */
const KEPT_FREE_MS = 10_000;

/**
 * Creates the places of `threads` threads. Long reads leave one thread free: those of `LONG_READS` always, others as
 * long as another key has something short to ask now and then. So nobody waits behind them, and a key that is alone has
 * all threads for its queries.
 * @param clock a time in ms that never goes back, that of `sentAt`
 */
export function createThreadPlaces(threads: number, clock: () => number = () => performance.now()): ThreadPlaces {
  const mostLong = Math.max(1, threads - 1);
  /** The two keys that asked something short last, and when; the latest comes first. */
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
      if (!isLong(read)) return true;
      const long = working.filter(isLong).length;
      return long < mostLong || (!LONG_READS.has(read.name) && long < threads && !othersAskShort(read));
    },
    isQuick,
    endsSoon: (read) => isQuick(read) && clock() - read.sentAt < QUICK_MS,
  };
}
