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

/**
 * Keeps the children of a pool. At most `size` of them have had documents; beside them, once a child had to be ended
 * because tenants took turns, a fresh one is kept ready, so that it starts while the document before is read.
 * @param options.start  starts a child
 * @param options.size   most children that read at once
 * @param options.idleMs longest time that an idle child is kept (ms)
 */
export function createParserChildren({
  start,
  size,
  idleMs,
}: {
  readonly start: () => ParserProcess;
  readonly size: number;
  readonly idleMs: number;
}): ParserChildren {
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
    void parser.stop().then(() => running.delete(parser));
  };

  const keep = (parser: ParserProcess) => {
    idle.set(parser, setTimeout(() => discard(parser), idleMs).unref());
  };

  /** Ends the child of other tenants that was idle for the longest time, if there are too many; starts a fresh one. */
  const replaceForeign = () => {
    const isForeign = (parser: ParserProcess) => tenants.has(parser);
    const foreign = [...idle.keys()].find(isForeign);
    if (foreign === undefined || tenants.size <= size) return;
    discard(foreign);
    if ([...idle.keys()].every(isForeign)) keep(add());
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
      if (own === undefined) replaceForeign();
      return parser;
    },
    giveBack(parser) {
      if (parser.isUsable()) keep(parser);
      else discard(parser);
    },
    async close() {
      for (const timer of idle.values()) clearTimeout(timer);
      idle.clear();
      await Promise.all([...running].map((parser) => parser.stop()));
    },
  };
}
