import fs from 'node:fs';
import { createIndexMemory, type IndexMemory } from '../adapters/following-index/index-memory.ts';
import { openVectorIndex, type VectorIndexChoice } from '../adapters/vector-index/open-vector-index.ts';
import { EngineError } from '../errors.ts';
import type { Embedder, VectorIndex } from '../ports.ts';
import { findModelNumber, listModels, modelNumber } from '../store/embeddings.ts';
import {
  ensureLiveModels,
  findLiveModels,
  sectorModels,
  type SectorModels,
  type StoredModel,
} from '../store/live-model.ts';
import type { SharedReader } from '../shared-memory.ts';
import { hasEvents, switchEvents } from '../store/events.ts';
import { openStore, retryWhileBusy, type OpenStoreOptions, type Store } from '../store/open-store.ts';
import { openTenantStore, type TenantPlace } from '../store/postgres/tenant-database.ts';
import { ensureStoreId, findInfo, hasStoreId } from '../store/store-info.ts';
import type { VectorSpace } from '../store/vectors.ts';
import { chooseWordIndex } from '../store/word-index/open-word-search.ts';
import type { SharedFile } from './shared-files.ts';
import type { WordIndexChoice } from '../store/word-index/word-search.ts';

/**
 * Name of the entry in `store_info` that a file has while its indexes are made again. Until they are complete, a query
 * would return a part as if it were all, so a file with this mark is not opened.
 */
export const REBUILDING = 'rebuilding';

/** The name of a vector space. Spaces that differ in one of these are different, and their vectors never compared. */
export type SpaceIdentity = Pick<Embedder, 'provider' | 'model' | 'dimensions' | 'encoding'>;

/**
 * A tenant's file on one connection, with its vector spaces and indexes. Its models are read from the file at each use,
 * but only once in a transaction, so that every process changes to a new model at the same commit. Do not keep them
 * across an await.
 */
export interface OpenTenant {
  readonly store: Store;
  /** Id of the file, made with it, which write receipts name. */
  readonly storeId: string;
  /**
   * The models that queries and links use now, by sector; null if `identity` was null, as with `OM_EMBEDDINGS=none`.
   */
  readonly liveModels: SectorModels | null;
  /**
   * The models that the settings name, by sector. They differ from `liveModels` while the model changes. null if
   * `identity` was null, or if another process has dropped one of them since this file was opened.
   */
  readonly configuredModels: SectorModels | null;
  /** The live model of the first of SECTORS, which embeds all sectors unless each has its own; null without models. */
  readonly live: StoredModel | null;
  /** The vector space of `live`; null without models. */
  readonly space: VectorSpace | null;
  /** The vector index of `live`; null without models. */
  readonly index: VectorIndex | null;
  /** The vector space of the first of `configuredModels`; null without them. */
  readonly configured: VectorSpace | null;
  /** The vector index of every model that the file knows, live or not, by model number. An erasure must reach all. */
  readonly indexes: ReadonlyMap<number, VectorIndex>;
  /** Closes the indexes and the connection. */
  close(): void;
}

/** How a tenant's file is opened. */
export interface OpenTenantOptions {
  /** Where the tenant lives if not in its file, as `placeOf` tells; null, the default, for the file. */
  readonly place?: TenantPlace | null;
  /** `reader` for a connection that refuses writes, `acknowledger` for the writer, `worker` for steps and commands. */
  readonly role: OpenStoreOptions['role'];
  /**
   * Spaces that the settings name: one for all sectors, or one a sector in the order of SECTORS; null for no vectors.
   */
  readonly identity: SpaceIdentity | readonly SpaceIdentity[] | null;
  /** Time at which a model that the file does not know yet is noted in it, Unix ms. */
  readonly now: number;
  /** Bound on the memory that the vector indexes of this thread share; without it each takes what it needs. */
  readonly indexMemory?: IndexMemory;
  /** How vectors are searched, as `OM_VECTOR_INDEX` says; 'auto' by default. */
  readonly vectorIndex?: VectorIndexChoice | undefined;
  /** How the word index is read, as `OM_WORD_INDEX` says; 'auto' by default. */
  readonly wordIndex?: WordIndexChoice | undefined;
  /** Memory that threads share, and the thread; by default the connection has its own. */
  readonly shared?: { readonly file: () => SharedFile; readonly reader: SharedReader } | undefined;
  /** Called once if 'auto' finds a word index in an unknown format. */
  readonly onUnknownWordFormat?: (() => void) | undefined;
  /** Whether changes leave events, as `OM_EVENTS` says; left out, the file stays as it is. */
  readonly events?: boolean | undefined;
  /** Whether a file may be opened although its rebuild was broken off, to run it again; false by default. */
  readonly rebuilding?: boolean;
}

/**
 * Opens a tenant's file, creates and migrates it if needed, even for a reader, and makes sure that it has an id and
 * that the configured models have numbers. In a file without a live model, the configured one becomes live.
 * @param path absolute path of the file
 * @throws EngineError the errors of `openStore`; `unprocessable` if a rebuild of its index was broken off, unless
 *   `rebuilding` is set
 */
export function openTenant(path: string, options: OpenTenantOptions): OpenTenant {
  const { role, identity, now, indexMemory = createIndexMemory(), rebuilding = false } = options;
  const identities = identity === null ? null : [identity].flat();
  const { place = null } = options;
  if (role === 'reader') prepare(path, place, identities, now);
  const store = open(path, place, role);
  const { shared } = options;
  const lengths = shared && { lengths: shared.file().lengths, reader: shared.reader };
  chooseWordIndex(store, options.wordIndex ?? 'auto', options.onUnknownWordFormat, lengths);
  try {
    if (role !== 'reader') {
      retryWhileBusy(() => ensurePrepared(store, identities, now));
      const { events = hasEvents(store) } = options;
      if (hasEvents(store) !== events) retryWhileBusy(() => store.write(() => switchEvents(store, events)));
    }
    if (!rebuilding && findInfo(store, REBUILDING) !== undefined) {
      throw new EngineError('unprocessable', 'a rebuild of its index was broken off: run `cairn rebuild-index` again');
    }
    const { vectorIndex: choice = 'auto' } = options;
    return describe(store, identities, (space) => {
      const vectors = shared?.file().vectors.find((one) => one.space.modelNo === space.modelNo);
      const sharing = vectors && { shared: { vectors, reader: shared!.reader } };
      return openVectorIndex(store, space, { choice, indexMemory, ...sharing });
    });
  } catch (error) {
    store.close();
    throw error;
  }
}

/**
 * Opens the store of a tenant.
 * @throws EngineError `conflict` for a tenant of a database that has a file here, too
 */
function open(path: string, place: TenantPlace | null, role: OpenStoreOptions['role']): Store {
  if (place === null) return openStore(path, { role, create: true });
  if (fs.existsSync(path)) {
    throw new EngineError(
      'conflict',
      `OM_DATABASE_URL is set, but tenant ${place.tenant} has a file at ${path}, which no command moves yet: ` +
        'leave the setting out, or take another OM_DB_PATH',
    );
  }
  return openTenantStore({ ...place, path, role });
}

/** Prepares a file for a reader on another connection, since a reader cannot write. Does nothing if it is prepared. */
function prepare(path: string, place: TenantPlace | null, identities: Identities, now: number): void {
  // In a database a reader cannot make the tenant either.
  const store = open(path, place, place === null ? 'reader' : 'worker');
  try {
    if (isPrepared(store, identities)) return;
  } finally {
    store.close();
  }
  openTenant(path, { place, role: 'worker', identity: identities, now }).close();
}

type Identities = readonly SpaceIdentity[] | null;

function isPrepared(store: Store, identities: Identities): boolean {
  const named = hasStoreId(store);
  if (!named || identities === null) return named;
  return findLiveModels(store) !== undefined && findConfigured(store, identities) !== null;
}

function ensurePrepared(store: Store, identities: Identities, now: number): void {
  if (isPrepared(store, identities)) return;
  store.write(() => {
    ensureStoreId(store);
    if (identities === null) return;
    const models = identities.map((identity) => ({ ...identity, modelNo: modelNumber(store, identity, now) }));
    ensureLiveModels(store, sectorModels(models));
  });
}

function findConfigured(store: Store, identities: readonly SpaceIdentity[]): SectorModels | null {
  const models = identities.flatMap(({ provider, model, dimensions, encoding }) => {
    const identity = { provider, model, dimensions, encoding };
    const modelNo = findModelNumber(store, identity);
    return modelNo === undefined ? [] : [{ ...identity, modelNo }];
  });
  return models.length === identities.length ? sectorModels(models) : null;
}

function describe(store: Store, identities: Identities, openIndex: (space: VectorSpace) => VectorIndex): OpenTenant {
  const openIndexes = new Map<number, VectorIndex>();
  const indexOf = (model: StoredModel): VectorIndex => {
    const { modelNo } = model;
    let index = openIndexes.get(modelNo);
    if (index === undefined) openIndexes.set(modelNo, (index = openIndex(spaceOf(model))));
    return index;
  };
  const findLiveSet = oncePerTransaction(store, () => (identities === null ? null : (findLiveModels(store) ?? null)));
  const findLive = () => findLiveSet()?.[0] ?? null;
  const findConfiguredSet = oncePerTransaction(store, () => identities && findConfigured(store, identities));
  const listIndexes = oncePerTransaction(
    store,
    () => new Map(listModels(store).map((model) => [model.modelNo, indexOf(model)])),
  );
  return {
    store,
    storeId: store.read(() => ensureStoreId(store)),
    get liveModels() {
      return findLiveSet();
    },
    get configuredModels() {
      return findConfiguredSet();
    },
    get live() {
      return findLive();
    },
    get space() {
      const live = findLive();
      return live && spaceOf(live);
    },
    get index() {
      const live = findLive();
      return live && indexOf(live);
    },
    get configured() {
      const configured = findConfiguredSet();
      return configured && spaceOf(configured[0]);
    },
    get indexes() {
      return listIndexes();
    },
    close() {
      for (const index of openIndexes.values()) index.close();
      store.close();
    },
  };
}

/**
 * Returns a function that calls `read` once in a transaction, and at each use outside of one, since the value is asked
 * for with each of many memories. Code that changes the value in a transaction must not read it again before the
 * commit.
 */
function oncePerTransaction<T>(store: Store, read: () => T): () => T {
  let cached: { readonly transactionNo: number; readonly value: T } | undefined;
  return () => {
    const { transactionNo } = store;
    if (transactionNo === undefined) return read();
    if (cached?.transactionNo !== transactionNo) cached = { transactionNo, value: read() };
    return cached.value;
  };
}

/** Returns the vector space of a stored model, which is the model without its names. */
export function spaceOf({ modelNo, dimensions, encoding }: StoredModel): VectorSpace {
  return { modelNo, dimensions, encoding };
}

/** Whether two embedders or models make vectors of the same space, which can be compared. */
export function isSameSpace(one: SpaceIdentity, other: SpaceIdentity): boolean {
  return (
    one.provider === other.provider &&
    one.model === other.model &&
    one.dimensions === other.dimensions &&
    one.encoding === other.encoding
  );
}
