/** A member of a group that takes turns: a tenant, or an API key of a tenant. */
export interface Member {
  readonly name: string;
  /** Thread time at which its next turn begins (ms), on a clock that its group shares. */
  startsAt: number;
  waiting: number;
  /** Number of its reads that threads have. */
  taken: number;
  /** The part of `startsAt` that is only expected (ms), for the reads that threads have. */
  takenMs: number;
}

/** Least time that a read counts (ms), so that reads of unknown cost take turns. */
const LEAST_MS = 0.1;
/** Greatest number of members without reads whose time is remembered; one that is forgotten counts as new. */
const MAX_REMEMBERED = 1_000;

/**
 * Members that take turns by start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996): each turn of a member
 * begins where its last one ended, in the thread time that it used, and the turn that begins first is next.
 */
export class Turns<M extends Member> {
  /** The members that have reads, waiting or taken, by name. */
  readonly members = new Map<string, M>();
  /** For members without reads, the time at which their next turns begin (ms); the one that left last comes last. */
  readonly #remembered = new Map<string, number>();
  /**
   * Start of the latest turn (ms), without the time that the other reads of its member are only expected to take: with
   * it, a newcomer would wait for time that nobody has used.
   */
  #now = 0;

  /**
   * Adds a waiting read to a member, which is created if needed. A member does not save up time in which it had no
   * reads.
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
   * Returns the waiting member whose turn is next among those for which `find` returns something, with that result;
   * undefined if there is none.
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

  /** Corrects a member's time by that of a turn which has ended. */
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
   * Removes a member that has no reads any more. Only its time is remembered, and nothing once no member has any reads.
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
