import type { ParserProcess } from './parser-process.ts';

/** The child processes of a pool, each of which reads documents of one tenant. */
export interface ParserChildren {
  /** Takes a usable child that has read documents of this tenant only, or none yet. */
  take(tenant: string): ParserProcess;
  /** Takes back a child after its document. */
  giveBack(parser: ParserProcess): void;
  /** Ends all children. Resolves once they are gone. */
  close(): Promise<void>;
}

export interface ParserChildrenOptions {
  /** Starts a child. */
  readonly start: () => ParserProcess;
  /** Most children that read at once. */
  readonly size: number;
  /** Longest time that an idle child is kept (ms). */
  readonly idleMs: number;
}

/**
 * Number of children, beyond those that may read at once, that are kept for tenants who take turns. A child that has
 * read small files shares half of its memory with the others.
 */
export const KEPT_FOR_TURNS = 2;
/**
 * Memory (MB) from which a child counts as large. No more large children are kept, those that read included, than may
 * read at once: the others together stay below this bound each.
 */
export const LARGE_MB = 256;

/**
 * Keeps the children of a pool. At most `size` and `KEPT_FOR_TURNS` of them have had documents, each of another tenant
 * or at the same time; the one that was idle for the longest time is replaced. Once there are children of several
 * tenants, a fresh one is kept ready beside them, so that it starts before it is needed.
 */
export function createParserChildren({ start, size, idleMs }: ParserChildrenOptions): ParserChildren {
  const running = new Set<ParserProcess>();
  /** Idle children with the timers that end them, longest idle first. */
  const idle = new Map<ParserProcess, NodeJS.Timeout>();
  /** The tenant of each child that has had a document. */
  const tenants = new Map<ParserProcess, string>();

  const add = (): ParserProcess => {
    const parser = start();
    running.add(parser);
    void parser.ended.then(() => tenants.delete(parser));
    return parser;
  };

  const unsetIdle = (parser: ParserProcess) => {
    clearTimeout(idle.get(parser));
    idle.delete(parser);
  };

  const discard = (parser: ParserProcess) => {
    unsetIdle(parser);
    tenants.delete(parser);
    void parser.stop().then(() => running.delete(parser));
  };

  const keep = (parser: ParserProcess) => {
    idle.set(parser, setTimeout(() => discard(parser), idleMs).unref());
  };

  const endSurplus = () => {
    for (const parser of surplusOf({ idle: [...idle.keys()], tenants, size })) discard(parser);
  };

  /** Starts a fresh child if tenants take turns and none is ready. */
  const prepareNext = () => {
    const isFreshReady = [...idle.keys()].some((parser) => !tenants.has(parser));
    if (!isFreshReady && new Set(tenants.values()).size > 1) keep(add());
  };

  return {
    take(tenant) {
      for (const parser of idle.keys()) if (!parser.isUsable()) discard(parser);
      // The child that was idle for the shortest time is taken, so that children that are not needed reach `idleMs`.
      const latestFirst = [...idle.keys()].reverse();
      const own = latestFirst.find((parser) => tenants.get(parser) === tenant);
      const parser = own ?? latestFirst.find((fresh) => !tenants.has(fresh)) ?? add();
      unsetIdle(parser);
      tenants.set(parser, tenant);
      endSurplus();
      if (own === undefined) prepareNext();
      return parser;
    },
    giveBack(parser) {
      if (!parser.isUsable()) return discard(parser);
      keep(parser);
      endSurplus();
    },
    async close() {
      for (const timer of idle.values()) clearTimeout(timer);
      idle.clear();
      await Promise.all([...running].map((parser) => parser.stop()));
    },
  };
}

/**
 * Lists the idle children to end, the longest idle first, where too many have had documents, or too many are large.
 * @param options.idle    the idle children, longest idle first
 * @param options.tenants the children that have had documents
 * @param options.size    most children that read at once
 */
function surplusOf({
  idle,
  tenants,
  size,
}: {
  readonly idle: readonly ParserProcess[];
  readonly tenants: ReadonlyMap<ParserProcess, string>;
  readonly size: number;
}): ParserProcess[] {
  const used = idle.filter((parser) => tenants.has(parser));
  const reading = tenants.size - used.length;
  const tooMany = Math.max(0, tenants.size - size - KEPT_FOR_TURNS);
  const large = used.slice(tooMany).filter((parser) => parser.heldMb() > LARGE_MB);
  return [...used.slice(0, tooMany), ...large.slice(0, Math.max(0, reading + large.length - size))];
}
