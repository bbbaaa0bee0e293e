/** A tenant that has places or waits for one. */
interface Member {
  taken: number;
  /** Functions that let its waiting calls go on, in their order. */
  readonly waiting: (() => void)[];
}

/** A bounded number of places, of which tenants that wait have equal shares. */
export class FairPlaces {
  readonly #most: number;
  readonly #members = new Map<string, Member>();
  #taken = 0;

  /** @param most number of places */
  constructor(most: number) {
    this.#most = most;
  }

  /** Waits for a place, and takes it. `leave` must be called for it. */
  async enter(tenantId: string): Promise<void> {
    let member = this.#members.get(tenantId);
    if (member === undefined) this.#members.set(tenantId, (member = { taken: 0, waiting: [] }));
    const { waiting } = member;
    if (this.#taken >= this.#most) return new Promise((resolve) => waiting.push(resolve));
    this.#taken += 1;
    member.taken += 1;
  }

  /** Passes a place on to the waiting tenant that has the fewest, so that no later call takes it. */
  leave(tenantId: string): void {
    const member = this.#members.get(tenantId)!;
    member.taken -= 1;
    if (member.taken === 0 && member.waiting.length === 0) this.#members.delete(tenantId);
    let next: Member | undefined;
    for (const other of this.#members.values())
      if (other.waiting.length > 0 && (next === undefined || other.taken < next.taken)) next = other;
    if (next === undefined) {
      this.#taken -= 1;
      return;
    }
    next.taken += 1;
    next.waiting.shift()!();
  }
}
