import { noteCost, type ReadCost } from './read-costs.ts';
import { type Member, Turns } from './turns.ts';

/** What the queue knows of a read. */
export interface QueuedRead {
  /** Rises from read to read. */
  readonly id: number;
  /** Path of the tenant's file. */
  readonly path: string;
  /** Id of the key that asks; '' for none. */
  readonly key: string;
  readonly name: string;
  readonly cost: ReadCost;
}

interface Key<Read> extends Member {
  /** Reads by name. No list is empty. */
  readonly lists: Map<string, Read[]>;
}

interface Tenant<Read> extends Member {
  readonly keys: Turns<Key<Read>>;
}

/**
 * The reads that wait for a thread. Tenants take turns and, inside a tenant, its keys. What is shared out is the time
 * of threads, not the number of reads: who asked what took long waits until the others had as much.
 */
export class FairQueue<Read extends QueuedRead> {
  readonly #tenants = new Turns<Tenant<Read>>();
  /** The reads that threads have, with the time that they were expected to take (ms). */
  readonly #taken = new Map<Read, number>();
  #size = 0;

  /** Number of reads that wait. */
  get size(): number {
    return this.#size;
  }

  /** Puts a read behind those of its key that have its name. */
  push(read: Read): void {
    this.#put(read, 'push');
  }

  /** Puts a read in front of those of its key that have its name. */
  pushFront(read: Read): void {
    this.#put(read, 'unshift');
  }

  /**
   * Takes the read that is next of those that may run. Reads of a key go in their order, but one that may not run holds
   * up none of another name: `mayRun` is asked for the first read of each key and name alone.
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

  /** Notes that a read that was taken has left its thread, which it had for `ms`. */
  end(read: Read, ms: number): void {
    const expectedMs = this.#taken.get(read);
    if (expectedMs === undefined) return;
    this.#taken.delete(read);
    const { tenant, key } = this.#membersOf(read);
    this.#tenants.end(tenant, { expectedMs, ms });
    tenant.keys.end(key, { expectedMs, ms });
    noteCost(read.cost, ms);
  }

  /** Takes a read out that nobody waits for any more. */
  remove(read: Read): void {
    if (!this.#takeOut(read)) return;
    const { tenant, key } = this.#membersOf(read);
    this.#tenants.leave(tenant);
    tenant.keys.leave(key);
  }

  /** Takes out the latest read of the key that has most waiting, in the tenant that has most waiting. */
  removeFromLongest(): Read | undefined {
    const lists = this.#tenants.longest()?.keys.longest()?.lists;
    const latest = [...(lists?.values() ?? [])].map((list) => list.at(-1)!).sort((a, b) => b.id - a.id)[0];
    if (latest !== undefined) this.remove(latest);
    return latest;
  }

  /** Takes all reads out. */
  clear(): Read[] {
    const reads: Read[] = [];
    for (const { keys } of this.#tenants.members.values()) {
      for (const { lists } of keys.members.values()) reads.push(...[...lists.values()].flat());
    }
    for (const read of reads) this.remove(read);
    return reads;
  }

  #put(read: Read, where: 'push' | 'unshift'): void {
    const tenant = this.#tenants.enter(read.path, (member) => ({ ...member, keys: new Turns() }));
    const { lists } = tenant.keys.enter(read.key, (member) => ({ ...member, lists: new Map() }));
    const list = lists.get(read.name);
    if (list === undefined) lists.set(read.name, [read]);
    else list[where](read);
    this.#size += 1;
  }

  /** Takes a read out of its list; returns false if it does not wait. */
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

/** Returns the earliest read of a key that may run. */
function firstOf<Read extends QueuedRead>({ lists }: Key<Read>, mayRun: (read: Read) => boolean): Read | undefined {
  let first: Read | undefined;
  for (const [read] of lists.values()) {
    if ((first === undefined || read!.id < first.id) && mayRun(read!)) first = read;
  }
  return first;
}
