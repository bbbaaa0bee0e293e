import { LRUCache } from 'lru-cache';
import type { ReadCommandName } from './commands.ts';
import type { FairQueue } from './fair-queue.ts';
import type { Read } from './read.ts';
import type { ReaderPool } from './reader-pool.ts';
import type { ThreadLink } from './thread-link.ts';
import type { ThreadPlaces } from './thread-places.ts';

/**
 * Commands for which a thread keeps much of a tenant's file in memory: the index of its standing queries takes some
 * 50 MB, and up to 400 MB. All of a tenant run on one thread, so that no other thread keeps a copy.
 */
const ON_ONE_THREAD: ReadonlySet<ReadCommandName> = new Set<ReadCommandName>(['compareStanding']);
/** Greatest number of tenants whose thread is remembered; beyond it the longest unused are forgotten. */
const MAX_HOMES = 10_000;

/** Gives waiting reads (commands that read a tenant's file) to threads. */
export interface HandOut {
  /** Gives one waiting read to a thread that can take it. Returns false if no read waits or none may run now. */
  handOne(): boolean;
  /** Forgets which thread keeps these files in memory. */
  forget(paths: readonly string[]): void;
}

/**
 * Creates the object that gives waiting reads to the threads of a pool. It prefers threads without work; if there are
 * none, it gives a quick read to a thread whose only read ends soon.
 */
export function createHandOut({
  waiting,
  pool,
  places,
}: {
  readonly waiting: Pick<FairQueue<Read>, 'take'>;
  readonly pool: Pick<ReaderPool, 'idle' | 'soonIdle' | 'working' | 'has'>;
  readonly places: Pick<ThreadPlaces, 'hasRoom' | 'isQuick' | 'endsSoon'>;
}): HandOut {
  /** Number of tenants of which a thread is the home (`homes`), by thread. */
  const tenantsOf = new WeakMap<ThreadLink, number>();
  const count = (link: ThreadLink, by: 1 | -1) => tenantsOf.set(link, (tenantsOf.get(link) ?? 0) + by);
  /** The thread on which the commands `ON_ONE_THREAD` run, by the path of a tenant's file. */
  const homes = new LRUCache<string, ThreadLink>({ max: MAX_HOMES, dispose: (link) => count(link, -1) });
  const settle = (path: string, link: ThreadLink) => {
    if (homes.get(path) === link) return;
    homes.set(path, link);
    count(link, 1);
  };

  /**
   * Tells whether a read may run on the thread `link`. A command that keeps no data on a thread (all but
   * `ON_ONE_THREAD`) may run on any. Another one runs on the tenant's home; a tenant without a home gets one among
   * `free`, the threads that could take the read, namely one with the fewest tenants.
   */
  const isAtHome = ({ name, path }: Read, link: ThreadLink, free: readonly ThreadLink[]) => {
    if (!ON_ONE_THREAD.has(name)) return true;
    const home = homes.get(path);
    if (home !== undefined && pool.has(home)) return home === link;
    const fewest = Math.min(...free.map((one) => tenantsOf.get(one) ?? 0));
    return (tenantsOf.get(link) ?? 0) === fewest;
  };
  const give = (link: ThreadLink, free: readonly ThreadLink[], mayRun: (read: Read) => boolean) => {
    const read = waiting.take((one) => mayRun(one) && isAtHome(one, link, free));
    if (read === undefined) return false;
    if (ON_ONE_THREAD.has(read.name)) settle(read.path, link);
    link.send(read);
    return true;
  };

  return {
    handOne() {
      const idle = pool.idle();
      const working = pool.working();
      if (idle.length > 0) return idle.some((link) => give(link, idle, (read) => places.hasRoom(read, working)));
      const link = pool.soonIdle(places.endsSoon);
      return link !== undefined && give(link, [link], places.isQuick);
    },
    forget(paths) {
      for (const path of paths) homes.delete(path);
    },
  };
}
