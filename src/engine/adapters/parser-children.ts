import { EngineError } from '../errors.ts';
import type { ParserProcess } from './parser-process.ts';

/** The child processes of a parser pool. Each child reads documents of one tenant only. */
export interface ParserChildren {
  /**
   * Returns a usable child that has read documents of this tenant only, or none yet; if there is none, a new one is
   * started. The caller must return it by `giveBack`.
   * @throws EngineError `unavailable` if no process can be started
   */
  take(tenant: string): ParserProcess;
  /** Takes back a child after it has read a document. A child that is no longer usable is ended. */
  giveBack(parser: ParserProcess): void;
  /** Ends all children. Resolves when they have ended. */
  close(): Promise<void>;
}

export interface ParserChildrenOptions {
  /** Starts a child process that reads documents. */
  readonly start: () => ParserProcess;
  /** Greatest number of children that read documents at the same time. */
  readonly size: number;
  /** Greatest time that an idle child is kept (ms). */
  readonly idleMs: number;
}

/**
 * Number of children that are kept in addition to the `size` children that may read at the same time, for documents of
 * alternating tenants. A child that has read small files shares half of its memory with the others.
 */
export const SPARE_CHILDREN = 2;
/**
 * Memory of a child (MB) above which it counts as large. At most `size` large children are kept; every child that is
 * reading a document counts as a large one.
 */
export const LARGE_MB = 256;

/**
 * Creates the manager of a pool's children. At most `size` + 2 (`SPARE_CHILDREN`) children that have read documents are
 * kept; beyond that number, the children that were idle longest are ended. Once there are children of several tenants,
 * a new child is kept ready, so that it has started before it is needed.
 */
export function createParserChildren({ start, size, idleMs }: ParserChildrenOptions): ParserChildren {
  const running = new Set<ParserProcess>();
  /** Idle children, each with the timer that ends it; the child that was idle longest comes first. */
  const idle = new Map<ParserProcess, NodeJS.Timeout>();
  /** For each child that was given a document, the tenant of that document. */
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

  /** Starts a new child if documents of several tenants alternate, no unused child is ready, and one can be started. */
  const prepareNext = () => {
    const isFreshReady = [...idle.keys()].some((parser) => !tenants.has(parser));
    try {
      if (!isFreshReady && new Set(tenants.values()).size > 1) keep(add());
    } catch (error) {
      // A document that needs it later tries again, and is told.
      if (!(error instanceof EngineError)) throw error;
    }
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
 * Lists the idle children that must be ended, since too many children have read documents or too many are large; those
 * that were idle longest come first.
 * @param options.idle the idle children, longest idle first
 * @param options.tenants the tenant of each child that was given a document
 * @param options.size greatest number of children that read at the same time
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
  const tooMany = Math.max(0, tenants.size - size - SPARE_CHILDREN);
  const large = used.slice(tooMany).filter((parser) => parser.heldMb() > LARGE_MB);
  return [...used.slice(0, tooMany), ...large.slice(0, Math.max(0, reading + large.length - size))];
}
