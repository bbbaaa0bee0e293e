/** One that takes turns with others: a tenant, or a key of a tenant. */
export interface Member {
  readonly name: string;
  /** Time of threads at which its next turn begins (ms), on a clock that its group shares. */
  startsAt: number;
  waiting: number;
  /** Number of its reads that threads have. */
  taken: number;
  /** The part of `startsAt` that is only expected (ms): that of the reads that threads have. */
  takenMs: number;
}

/** Least time that a read counts for (ms), so that reads of unknown cost take turns. */
const LEAST_MS = 0.1;
/** Most members without reads whose time is remembered. One that is forgotten counts as new. */
const MAX_REMEMBERED = 1_000;

/**
 * Members that take turns by start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996): each turn begins where the
 * member's last one ended, in time that it had, and the turn that begins first is next.
 */
export class Turns<M extends Member> {
  /** The members that have reads, which wait or are taken. */
  readonly members = new Map<string, M>();
  /** Where the next turns begin of members that have no reads; who left last comes last. */
  readonly #remembered = new Map<string, number>();
  /**
   * Start of the latest turn (ms), without the time that its member's other reads were only expected to take: with it,
   * a newcomer would wait for time that nobody has had.
   */
  #now = 0;

  /** Adds a read that waits to a member. Time that a member did not ask for is not saved up for it. */
  enter(name: string, create: (member: Member) => M): M {
    let member = this.members.get(name);
    if (member === undefined) {
      const startsAt = this.#remembered.get(name) ?? 0;
      this.#remembered.delete(name);
      this.members.set(name, (member = create({ name, startsAt, waiting: 0, taken: 0, takenMs: 0 })));
    }
    if (member.waiting === 0) member.startsAt = Math.max(member.startsAt, this.#now);
    member.waiting += 1;
    return member;
  }

  /** Takes a read out of a member that waited and gets no turn. */
  leave(member: M): void {
    member.waiting -= 1;
    this.#release(member);
  }

  /** Returns the member whose turn is next, of those that wait and for which `find` finds something. */
  next<Found>(find: (member: M) => Found | undefined): { readonly member: M; readonly found: Found } | undefined {
    let next: { readonly member: M; readonly found: Found } | undefined;
    for (const member of this.members.values()) {
      if (member.waiting === 0 || (next !== undefined && member.startsAt >= next.member.startsAt)) continue;
      const found = find(member);
      if (found !== undefined) next = { member, found };
    }
    return next;
  }

  /** Gives a member its turn, which is expected to take `ms`. */
  begin(member: M, ms: number): void {
    this.#now = Math.max(this.#now, member.startsAt - member.takenMs);
    const counted = Math.max(LEAST_MS, ms);
    member.startsAt += counted;
    member.takenMs += counted;
    member.waiting -= 1;
    member.taken += 1;
  }

  /** Corrects the time of a turn that has ended. */
  end(member: M, { expectedMs, ms }: { readonly expectedMs: number; readonly ms: number }): void {
    const counted = Math.max(LEAST_MS, expectedMs);
    member.startsAt += Math.max(LEAST_MS, ms) - counted;
    member.takenMs -= counted;
    member.taken -= 1;
    this.#release(member);
  }

  /** Returns the member with most reads waiting; undefined if there are no members. */
  longest(): M | undefined {
    let longest: M | undefined;
    for (const member of this.members.values()) {
      if (longest === undefined || member.waiting > longest.waiting) longest = member;
    }
    return longest;
  }

  /** Keeps no more than the time of a member without reads, and nothing once no member has any. */
  #release({ name, startsAt, waiting, taken }: M): void {
    if (waiting > 0 || taken > 0) return;
    this.members.delete(name);
    if (this.members.size === 0) {
      this.#remembered.clear();
      this.#now = 0;
    } else if (startsAt > this.#now) {
      this.#remembered.set(name, startsAt);
      if (this.#remembered.size > MAX_REMEMBERED) this.#remembered.delete(this.#remembered.keys().next().value!);
    }
  }
}
