/** Limits the number of documents that are read at the same time, fairly to tenants. */
export interface ParserGate {
  /**
   * Waits until the document is admitted, then runs `read` and returns its result. Among the waiting documents, one of
   * the tenant with the fewest admitted documents is next.
   */
  enter<T>(tenant: string, read: () => Promise<T>): Promise<T>;
}

interface Waiting {
  readonly tenant: string;
  readonly letIn: () => void;
}

/**
 * Creates a gate for `size` documents at the same time. One more document is admitted if its tenant has no admitted
 * document: a small document then need not wait for slow documents of another tenant.
 */
export function createParserGate(size: number): ParserGate {
  /** Number of admitted documents by tenant; a tenant without admitted documents has no entry. */
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
