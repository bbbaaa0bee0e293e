/** One that takes turns with others: a tenant, or a key of a tenant. */
export interface Member {
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
/** Members from which on those are forgotten that have nothing in hand and nothing to make up for. */
const MANY_MEMBERS = 1_000;

/**
 * Members that take turns by start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996): each turn begins where the
 * member's last one ended, in time that it had, and the turn that begins first is next.
 */
export class Turns<M extends Member> {
  readonly members = new Map<string, M>();
  /**
   * Start of the latest turn (ms), without the time that its member's other reads were only expected to take: with it,
   * a newcomer would wait for time that nobody has had.
   */
  #now = 0;

  /** Adds a read that waits to a member. Time that a member did not ask for is not saved up for it. */
  enter(name: string, create: (member: Member) => M): M {
    let member = this.members.get(name);
    if (member === undefined) {
      if (this.members.size >= MANY_MEMBERS) this.#forget();
      this.members.set(name, (member = create({ startsAt: 0, waiting: 0, taken: 0, takenMs: 0 })));
    }
    if (member.waiting === 0) member.startsAt = Math.max(member.startsAt, this.#now);
    member.waiting += 1;
    return member;
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
  }

  /** Returns the member with most reads waiting; undefined if there are no members. */
  longest(): M | undefined {
    let longest: M | undefined;
    for (const member of this.members.values()) {
      if (longest === undefined || member.waiting > longest.waiting) longest = member;
    }
    return longest;
  }

  #forget(): void {
    for (const [name, { startsAt, waiting, taken }] of this.members) {
      if (waiting === 0 && taken === 0 && startsAt <= this.#now) this.members.delete(name);
    }
  }
}
