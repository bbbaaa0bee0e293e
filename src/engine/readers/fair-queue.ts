import { FairSchedule, type Member } from './fair-schedule.ts';
import { noteCost, type ReadCost } from './read-costs.ts';

/** The data of a waiting read (a command that reads a tenant's file) by which the queue orders it. */
export interface QueuedRead {
  /** Number of the read, higher than those of all earlier reads. */
  readonly id: number;
  /** Path of the tenant's file. */
  readonly path: string;
  /** Id of the API key that asks; '' for none. */
  readonly key: string;
  readonly name: string;
  readonly cost: ReadCost;
}

interface Key<Read> extends Member {
  /** Waiting reads by the name of their command. No list is empty. */
  readonly lists: Map<string, Read[]>;
}

interface Tenant<Read> extends Member {
  readonly keys: FairSchedule<Key<Read>>;
}

/**
 * The queue of reads that wait for a thread. Tenants are served in turn and, within a tenant, its API keys. The time of
 * threads is shared equally, not the number of reads: a key whose reads took long waits until the other keys have had
 * as much time.
 */
export class FairQueue<Read extends QueuedRead> {
  readonly #tenants = new FairSchedule<Tenant<Read>>();
  /** The reads that run on threads, each with the time that it was expected to take (ms). */
  readonly #taken = new Map<Read, number>();
  #size = 0;

  /** Number of waiting reads. */
  get size(): number {
    return this.#size;
  }

  /** Adds a read after the waiting reads with its API key and command name. */
  push(read: Read): void {
    this.#put(read, 'push');
  }

  /** Adds a read before the waiting reads with its API key and command name. */
  pushFront(read: Read): void {
    this.#put(read, 'unshift');
  }

  /**
   * Removes and returns the next of the reads that may run; undefined if there is none. Reads of a key run in order,
   * but a read that may not run does not delay the key's reads of other commands. `mayRun` is called only for the first
   * read of each key and command name. The caller calls `end` when the read has ended.
   */
  take(mayRun: (read: Read) => boolean): Read | undefined {
    const next = this.#tenants.next(({ keys }) => keys.next((key) => firstOf(key, mayRun)));
    if (next === undefined) return undefined;
    const { member: tenant, found } = next;
    const { member: key, found: read } = found;
    const { expectedMs } = read.cost;
    this.#takeOut(read);
    this.#tenants.begin(tenant, expectedMs);
    tenant.keys.begin(key, expectedMs);
    this.#taken.set(read, expectedMs);
    return read;
  }

  /** Records that a read which `take` returned has ended, with the thread time that it used (ms). */
  end(read: Read, ms: number): void {
    const expectedMs = this.#taken.get(read);
    if (expectedMs === undefined) return;
    this.#taken.delete(read);
    const { tenant, key } = this.#membersOf(read);
    this.#tenants.end(tenant, { expectedMs, ms });
    tenant.keys.end(key, { expectedMs, ms });
    noteCost(read.cost, ms);
  }

  /** Removes a read whose result is no longer wanted; a read that does not wait is ignored. */
  remove(read: Read): void {
    if (!this.#takeOut(read)) return;
    const { tenant, key } = this.#membersOf(read);
    this.#tenants.leave(tenant);
    tenant.keys.leave(key);
  }

  /**
   * Removes and returns the latest read of the API key with the most waiting reads, in the tenant with the most;
   * undefined if the queue is empty.
   */
  removeFromLongest(): Read | undefined {
    const lists = this.#tenants.longest()?.keys.longest()?.lists;
    const latest = [...(lists?.values() ?? [])].map((list) => list.at(-1)!).sort((a, b) => b.id - a.id)[0];
    if (latest !== undefined) this.remove(latest);
    return latest;
  }

  /** Removes and returns all waiting reads. */
  clear(): Read[] {
    const reads: Read[] = [];
    for (const { keys } of this.#tenants.members.values()) {
      for (const { lists } of keys.members.values()) reads.push(...[...lists.values()].flat());
    }
    for (const read of reads) this.remove(read);
    return reads;
  }

  #put(read: Read, where: 'push' | 'unshift'): void {
    const tenant = this.#tenants.enter(read.path, (member) => ({ ...member, keys: new FairSchedule() }));
    const { lists } = tenant.keys.enter(read.key, (member) => ({ ...member, lists: new Map() }));
    const list = lists.get(read.name);
    if (list === undefined) lists.set(read.name, [read]);
    else list[where](read);
    this.#size += 1;
  }

  /** Removes a waiting read from its list, but not from the schedules; returns false if the read is not waiting. */
  #takeOut(read: Read): boolean {
    const lists = this.#tenants.members.get(read.path)?.keys.members.get(read.key)?.lists;
    const list = lists?.get(read.name);
    const at = list?.indexOf(read) ?? -1;
    if (at === -1) return false;
    list!.splice(at, 1);
    if (list!.length === 0) lists!.delete(read.name);
    this.#size -= 1;
    return true;
  }

  #membersOf(read: Read): { readonly tenant: Tenant<Read>; readonly key: Key<Read> } {
    const tenant = this.#tenants.members.get(read.path)!;
    return { tenant, key: tenant.keys.members.get(read.key)! };
  }
}

/** Returns the earliest read of a key that may run; undefined if there is none. */
function firstOf<Read extends QueuedRead>({ lists }: Key<Read>, mayRun: (read: Read) => boolean): Read | undefined {
  let first: Read | undefined;
  for (const [read] of lists.values()) {
    if ((first === undefined || read!.id < first.id) && mayRun(read!)) first = read;
  }
  return first;
}
