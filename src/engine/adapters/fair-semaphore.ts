/** A tenant that has admitted calls or waiting ones. */
interface Member {
  /** Number of the tenant's calls that were admitted and have not ended. */
  taken: number;
  /** Functions that continue the tenant's waiting calls, the oldest first. */
  readonly waiting: (() => void)[];
}

/**
 * A semaphore that is fair to tenants: it limits the number of calls at the same time, and shares it equally among the
 * tenants that wait.
 */
export class FairSemaphore {
  readonly #most: number;
  readonly #members = new Map<string, Member>();
  #taken = 0;

  /** @param most greatest number of calls at the same time */
  constructor(most: number) {
    this.#most = most;
  }

  /** Waits until a call of this tenant is admitted. `release` must be called after the call has ended. */
  async acquire(tenantId: string): Promise<void> {
    let member = this.#members.get(tenantId);
    if (member === undefined) this.#members.set(tenantId, (member = { taken: 0, waiting: [] }));
    const { waiting } = member;
    if (this.#taken >= this.#most) return new Promise((resolve) => waiting.push(resolve));
    this.#taken += 1;
    member.taken += 1;
  }

  /**
   * Ends an admitted call. Its place goes directly to the waiting tenant with the fewest admitted calls, so that no
   * later call takes it.
   */
  release(tenantId: string): void {
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
