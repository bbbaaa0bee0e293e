/** A member of a group that is served in turn: a tenant, or an API key of a tenant. */
export interface Member {
  readonly name: string;
  /**
   * Time at which the member's next turn begins (ms), on a clock that all members of the group share. The clock counts
   * thread time that was used, not time that has passed.
   */
  startsAt: number;
  /** Number of the member's reads that wait for a thread. */
  waiting: number;
  /** Number of the member's reads that run on threads. */
  taken: number;
  /** The part of `startsAt` (ms) that is only expected, for the member's reads that still run on threads. */
  takenMs: number;
}

/** Least time that a turn counts (ms), so that members whose reads have no known cost are served in turn, too. */
const LEAST_MS = 0.1;
/** Greatest number of members without reads whose time is remembered; a member that is forgotten counts as new. */
const MAX_REMEMBERED = 1_000;

/**
 * Members that are served in turn by start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996). Each turn of a
 * member begins where its last turn ended, counted in the thread time that its reads used. The member whose turn begins
 * first is served next.
 */
export class FairSchedule<M extends Member> {
  /** The members that have reads, waiting or taken, by name. */
  readonly members = new Map<string, M>();
  /**
   * For members without reads, by name, the time at which their next turns begin (ms); the member that left last comes
   * last.
   */
  readonly #remembered = new Map<string, number>();
  /**
   * Start of the latest turn (ms), without the time that other reads of its member are still expected to take: with
   * that time, a newcomer would wait for time that nobody has used.
   */
  #now = 0;

  /**
   * Adds a waiting read to a member, which is created if needed. A member gains no advantage from a time in which it
   * had no waiting reads.
   */
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

  /** Removes a waiting read of a member without giving it a turn. */
  leave(member: M): void {
    member.waiting -= 1;
    this.#release(member);
  }

  /**
   * Returns the member whose turn is next among the waiting members for which `find` returns a result, with this
   * result; undefined if there is no such member.
   */
  next<Found>(find: (member: M) => Found | undefined): { readonly member: M; readonly found: Found } | undefined {
    let next: { readonly member: M; readonly found: Found } | undefined;
    for (const member of this.members.values()) {
      if (member.waiting === 0 || (next !== undefined && member.startsAt >= next.member.startsAt)) continue;
      const found = find(member);
      if (found !== undefined) next = { member, found };
    }
    return next;
  }

  /** Gives a member its turn, which is expected to take `ms` milliseconds. */
  begin(member: M, ms: number): void {
    this.#now = Math.max(this.#now, member.startsAt - member.takenMs);
    const counted = Math.max(LEAST_MS, ms);
    member.startsAt += counted;
    member.takenMs += counted;
    member.waiting -= 1;
    member.taken += 1;
  }

  /** Replaces the expected time of a turn that has ended by the time that it took (ms). */
  end(member: M, { expectedMs, ms }: { readonly expectedMs: number; readonly ms: number }): void {
    const counted = Math.max(LEAST_MS, expectedMs);
    member.startsAt += Math.max(LEAST_MS, ms) - counted;
    member.takenMs -= counted;
    member.taken -= 1;
    this.#release(member);
  }

  /** Returns the member with the greatest number of waiting reads; undefined if there are no members. */
  longest(): M | undefined {
    let longest: M | undefined;
    for (const member of this.members.values()) {
      if (longest === undefined || member.waiting > longest.waiting) longest = member;
    }
    return longest;
  }

  /**
   * Removes a member if it has no reads any more, and remembers only the time at which its next turn begins. Once no
   * member of the group has any reads, nothing is remembered.
   */
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
