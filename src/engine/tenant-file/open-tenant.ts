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
import {
  lookIntoTenant,
  openStandbyStore,
  openTenantStore,
  type TenantPlace,
} from '../store/postgres/tenant-database.ts';
import { StandbyIsBehind } from '../store/standby-is-behind.ts';
import { ensureStoreId, findInfo, hasStoreId } from '../store/store-info.ts';
import type { VectorSpace } from '../store/vectors.ts';
import { chooseWordIndex } from '../store/word-index/open-word-search.ts';
import type { SharedFile } from './shared-files.ts';
import type { WordIndexChoice } from '../store/word-index/word-search.ts';

/**
 * Key of the entry in the table `store_info` that a file has while its indexes are rebuilt. Until they are complete, a
 * query would find only some of the memories, so only a rebuild opens a file with this entry.
 */
export const REBUILDING = 'rebuilding';

/**
 * The properties that name a vector space. Models that differ in one of them have different spaces, whose vectors are
 * never compared.
 */
export type SpaceIdentity = Pick<Embedder, 'provider' | 'model' | 'dimensions' | 'encoding'>;

/**
 * A tenant's file on one connection, with its vector spaces and indexes. The fields about models are read from the file
 * at each use, but only once in a transaction, so that every process changes to a new model at the same commit. Do not
 * keep their values across an await.
 */
export interface OpenTenant {
  readonly store: Store;
  /**
   * Id of the tenant's file, made when it is first opened; copies of the file keep it. Write receipts contain it, so
   * that another tenant's are refused.
   */
  readonly storeId: string;
  /**
   * The models that queries and links use now, one for each sector (kind of memory, see SECTORS); null with
   * `OM_EMBEDDINGS=none`, when the option `identity` is null.
   */
  readonly liveModels: SectorModels | null;
  /**
   * The models that the settings name, one for each sector. They differ from `liveModels` while the file changes to a
   * new model. Null if the option `identity` was null, or if another process has removed one of the models since this
   * file was opened.
   */
  readonly configuredModels: SectorModels | null;
  /**
   * The live model of the first sector in SECTORS. It embeds all sectors unless each sector has its own model. Null if
   * there are no live models.
   */
  readonly live: StoredModel | null;
  /** The vector space of the model `live`; null if `live` is null. */
  readonly space: VectorSpace | null;
  /** The vector index of the model `live`; null if `live` is null. */
  readonly index: VectorIndex | null;
  /** The vector space of the first of `configuredModels`; null if `configuredModels` is null. */
  readonly configured: VectorSpace | null;
  /**
   * The vector index of every model that the file has stored, live or not, by `modelNo`. An erasure must delete vectors
   * from all of them.
   */
  readonly indexes: ReadonlyMap<number, VectorIndex>;
  /** Closes the indexes and the connection. */
  close(): void;
}

/** How a tenant's file is opened. */
export interface OpenTenantOptions {
  /**
   * Database server and name of the tenant there, from `placeOf`; null, the default, if the tenant lives in its file.
   */
  readonly place?: TenantPlace | null;
  /**
   * Whether `place` is on a standby, on which nothing can be made: `openTenant` then throws StandbyIsBehind for a
   * tenant that the standby has not received whole. The role must be `reader`. False by default.
   */
  readonly isStandby?: boolean;
  /**
   * Use of the connection: `reader` refuses writes; `acknowledger` is for the writer, whose commits are fsynced;
   * `worker` is for job steps and for the command line.
   */
  readonly role: OpenStoreOptions['role'];
  /**
   * Vector spaces that the settings name: one for all sectors, or one for each sector in the order of SECTORS; null
   * with `OM_EMBEDDINGS=none`.
   */
  readonly identity: SpaceIdentity | readonly SpaceIdentity[] | null;
  /** Present time, Unix ms. It is stored with a model that the file does not know yet. */
  readonly now: number;
  /** Limit of the memory that the vector indexes of this thread share; if it is left out, there is no limit. */
  readonly indexMemory?: IndexMemory;
  /** Value of `OM_VECTOR_INDEX`, which chooses how vectors are searched; 'auto' by default. */
  readonly vectorIndex?: VectorIndexChoice | undefined;
  /** Value of `OM_WORD_INDEX`, which chooses how the word index is read; 'auto' by default. */
  readonly wordIndex?: WordIndexChoice | undefined;
  /**
   * The part of this file's data that the threads of the process keep in shared memory, and the number of this thread
   * there. By default the connection has memory of its own.
   */
  readonly shared?: { readonly file: () => SharedFile; readonly reader: SharedReader } | undefined;
  /**
   * Called when a search with 'auto' meets a word index of an unknown format and uses SQLite's own functions instead;
   * again only if the format was known in between.
   */
  readonly onUnknownWordFormat?: (() => void) | undefined;
  /**
   * Whether changes append events to the change feed, as `OM_EVENTS` says; if left out, the file keeps its present
   * setting. A reader ignores it.
   */
  readonly events?: boolean | undefined;
  /**
   * Whether a file may be opened although a rebuild of its indexes was interrupted, to run the rebuild again; false by
   * default.
   */
  readonly rebuilding?: boolean;
}

/**
 * Opens a tenant's file, creates and migrates it if needed, even for a reader, and makes sure that it has an id and
 * that the configured models have numbers. In a file without live models, the configured ones become live, one for each
 * sector. With `isStandby` nothing is created, migrated or written.
 * @param path absolute path of the file
 * @throws EngineError the errors of `openStore`; `unprocessable` if a rebuild of its index was interrupted, unless
 *   `rebuilding` is set; `conflict` for a tenant of a database server that also has a file at `path`; with `isStandby`,
 *   StandbyIsBehind if the standby has not received the tenant whole
 */
export function openTenant(path: string, options: OpenTenantOptions): OpenTenant {
  const { role, identity, now, indexMemory = createIndexMemory(), rebuilding = false } = options;
  const identities = identity === null ? null : [identity].flat();
  const { store, found } = openAndLook(path, options, identities);
  try {
    const { shared } = options;
    const lengths = shared && { lengths: shared.file().lengths, reader: shared.reader };
    chooseWordIndex(store, options.wordIndex ?? 'auto', options.onUnknownWordFormat, lengths);
    if (options.isStandby === true && !found.isPrepared) throw new StandbyIsBehind('the models of the tenant');
    if (role !== 'reader') {
      if (!found.isPrepared) retryWhileBusy(() => ensurePrepared(store, identities, now));
      const { events = found.hasEvents } = options;
      if (found.hasEvents !== events) retryWhileBusy(() => store.write(() => ensureEvents(store, events)));
    }
    if (!rebuilding && found.isRebuilding) {
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

/** A store, and what is known about it from its opening. */
interface Opened {
  readonly store: Store;
  readonly found: Found;
}

function openAndLook(
  path: string,
  { place = null, isStandby = false, role, now }: OpenTenantOptions,
  identities: Identities,
): Opened {
  if (isStandby) return looked(openStandbyStore({ ...place!, path }), identities);
  if (role !== 'reader') return looked(open(path, place, role), identities);
  const prepared = () => openTenant(path, { place, role: 'worker', identity: identities, now }).close();
  if (place === null) {
    // A reader creates and migrates the file, but cannot write to it.
    const { store, found } = looked(open(path, null, role), identities);
    if (found.isPrepared) return { store, found };
    store.close();
    prepared();
    return looked(open(path, null, role), identities);
  }
  // In a database a reader cannot make the tenant either. As a rule it is there, and a connection that may write, which
  // would take a thread of its own, is not needed.
  requireNoFile(path, place);
  const store = lookIntoTenant({ ...place, path });
  const opened = store && looked(store, identities);
  if (opened?.found.isPrepared) return opened;
  store?.close();
  prepared();
  return looked(open(path, place, role), identities);
}

/** What the opening of a tenant's file finds in it. */
interface Found {
  /**
   * Whether the file has an id and, unless it is opened without vectors, live models and numbers of the configured
   * models.
   */
  readonly isPrepared: boolean;
  /** Whether a rebuild of the indexes has begun and not ended: it runs, or was interrupted. */
  readonly isRebuilding: boolean;
  /** Whether changes append events to the change feed. */
  readonly hasEvents: boolean;
}

function looked(store: Store, identities: Identities): Opened {
  try {
    return { store, found: retryWhileBusy(() => look(store, identities)) };
  } catch (error) {
    store.close();
    throw error;
  }
}

/** Reads what the opening of a file needs to know. In PostgreSQL that takes one round trip. */
function look(store: Store, identities: Identities): Found {
  const read = () => ({
    isPrepared: isPrepared(store, identities),
    isRebuilding: findInfo(store, REBUILDING) !== undefined,
    hasEvents: hasEvents(store),
  });
  const { ahead } = store;
  if (ahead === null) return read();
  return ahead.readAtOpening(() => {
    ahead.readSpeculatively(
      // The first query of a transaction names its kind, and the first one of a question is that of the models.
      () => hasStoreId(store),
      () => findLiveModels(store),
      ...(identities ?? []).map((identity) => () => findModelNumber(store, identity)),
      () => findInfo(store, REBUILDING),
      () => hasEvents(store),
    );
    return read();
  });
}

/**
 * Opens the store of a tenant: its file, or with `place` its part of a database server.
 * @throws EngineError `conflict` for a tenant of a database server that also has a file at `path`
 */
function open(path: string, place: TenantPlace | null, role: OpenStoreOptions['role']): Store {
  if (place === null) return openStore(path, { role, create: true });
  requireNoFile(path, place);
  return openTenantStore({ ...place, path, role });
}

function requireNoFile(path: string, { tenant }: TenantPlace): void {
  if (!fs.existsSync(path)) return;
  throw new EngineError(
    'conflict',
    `OM_DATABASE_URL is set, but tenant ${tenant} has a file at ${path}: ` +
      'move it with `cairn move`, or set OM_DB_PATH to a path in another folder',
  );
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

/** Switches the change feed on or off, unless another process has done so since the file was looked at. */
function ensureEvents(store: Store, isOn: boolean): void {
  if (hasEvents(store) !== isOn) switchEvents(store, isOn);
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
 * Returns a function that calls `read` once in a transaction and caches its result until the transaction ends, since a
 * transaction may need the value for each of many memories. Outside of a transaction it calls `read` each time. Code
 * that changes the value in a transaction must not read it again before the commit.
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

/** Returns the vector space of a stored model: its number, dimensions and encoding. */
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
