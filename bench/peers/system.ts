/**
 * What a system must be able to do to stand beside Cairn: each file in `systems` opens one. The measuring process calls
 * it; a system that is a server is started by its file and asked over HTTP.
 */
import type { HashedEmbedder } from '../../src/engine/adapters/hashed-embedder.ts';

/** Asks for the ten best hits. Returns their texts, best first. */
export type Ask = (question: string) => Promise<string[]>;

export interface System {
  /** Takes texts in the fastest durable way that the system has; they need not be found yet. */
  load(texts: readonly string[]): Promise<void>;
  /** Ends loading: resolves when all texts are found by their words and by their vectors. */
  finishLoading(): Promise<void>;
  ask: Ask;
  /** Opens clients that ask at the same time. Without it all of them share `ask`. */
  openClients?(count: number): Promise<readonly Ask[]>;
  /** Adds texts that arrive one by one. Resolves when they are stored and found. */
  add(texts: readonly string[]): Promise<void>;
  readonly adding: Adding;
  /** Ids of the processes that the system runs in; without it, it runs in the measuring process. */
  processIds?(): readonly number[];
  /** Lets the system free the disk space that it can free, and ends it. */
  close(): Promise<void>;
}

/** How single adds are handed to a system that prefers to take several together. */
interface Adding {
  /** Greatest number of calls of `add` at the same time. */
  readonly atOnce: number;
  /** Greatest number of texts in one call. */
  readonly together: number;
  /** Shortest time between two calls, during which texts are gathered, ms. */
  readonly everyMs: number;
}

/**
 * Opens a system.
 * @param folder   an empty folder, in which everything that the system keeps on disk must be
 * @param embedder makes the vectors of an embedded system; a server has its own
 */
export type OpenSystem = (folder: string, embedder: HashedEmbedder) => Promise<System>;

interface SystemEntry {
  /** Name in the table. */
  readonly title: string;
  /** Whether its packages come from this folder's own package.json. */
  readonly isInstalled: boolean;
}

export const SYSTEMS = {
  cairn: { title: 'Cairn, over HTTP', isInstalled: false },
  fts5: { title: 'FTS5 + sqlite-vec, in process', isInstalled: false },
  lancedb: { title: 'LanceDB, in process', isInstalled: true },
  orama: { title: 'Orama, in process, only in memory', isInstalled: true },
  openmemory: { title: 'OpenMemory, over HTTP', isInstalled: false },
} as const satisfies Readonly<Record<string, SystemEntry>>;

export type SystemName = keyof typeof SYSTEMS;

/**
 * Loads a package of this folder's own package.json, which the root does not install, so that the compiler must not
 * look for its types either: callers describe the few members that they use.
 */
export async function loadPackage<Package>(name: string): Promise<Package> {
  return (await import(name)) as Package;
}
