/** Lets documents in to be read: so many at once, and one more of a tenant of which none is read. */
export interface ParserGate {
  /** Runs `read` once there is room. Of those that wait, one of the tenant with the fewest documents in comes first. */
  enter<T>(tenant: string, read: () => Promise<T>): Promise<T>;
}

interface Waiting {
  readonly tenant: string;
  readonly letIn: () => void;
}

/**
 * Creates a gate for `size` documents. The one more means that a tenant with a small document does not wait until slow
 * ones of another have ended; its child has a low priority, so that it takes little from the others.
 */
export function createParserGate(size: number): ParserGate {
  /** Documents of each tenant that are in; no tenant has none. */
  const inside = new Map<string, number>();
  let total = 0;
  let waiting: readonly Waiting[] = [];

  const countOf = (tenant: string) => inside.get(tenant) ?? 0;
  const hasRoom = (tenant: string) => total < size || (total === size && countOf(tenant) === 0);

  const change = (tenant: string, by: 1 | -1) => {
    total += by;
    const count = countOf(tenant) + by;
    if (count === 0) inside.delete(tenant);
    else inside.set(tenant, count);
  };

  const letNextIn = () => {
    const fewestFirst = waiting.toSorted((a, b) => countOf(a.tenant) - countOf(b.tenant));
    const next = fewestFirst.find(({ tenant }) => hasRoom(tenant));
    if (next === undefined) return;
    waiting = waiting.filter((one) => one !== next);
    change(next.tenant, 1);
    next.letIn();
    letNextIn();
  };

  return {
    async enter(tenant, read) {
      await new Promise<void>((letIn) => {
        waiting = [...waiting, { tenant, letIn }];
        letNextIn();
      });
      try {
        return await read();
      } finally {
        change(tenant, -1);
        letNextIn();
      }
    },
  };
}
