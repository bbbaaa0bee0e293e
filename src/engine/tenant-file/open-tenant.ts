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
import { openStore, retryWhileBusy, type OpenStoreOptions, type Store } from '../store/open-store.ts';
import { ensureStoreId, findInfo, hasStoreId } from '../store/store-info.ts';
import type { VectorSpace } from '../store/vectors.ts';
import { chooseWordIndex } from '../store/word-index/open-word-search.ts';
import type { WordIndexChoice } from '../store/word-index/word-search.ts';

/** Set while the indexes are made again: what a query found meanwhile would be a part passed off as the whole. */
export const REBUILDING = 'rebuilding';

/** Which vector space the settings ask for. */
export type SpaceIdentity = Pick<Embedder, 'provider' | 'model' | 'dimensions' | 'encoding'>;

/**
 * A tenant's file on one connection, with its vector spaces and indexes. Which of them is live is read from the file each time, in a
 * transaction once, so that every process goes over to a new model at the same commit.
 */
export interface OpenTenant {
  readonly store: Store;
  readonly storeId: string;
  /** The models that queries and links use now, by sector; null when `OM_EMBEDDINGS=none`. */
  readonly liveModels: SectorModels | null;
  /** Those that the settings ask for: others than `liveModels` while the model changes. null when `OM_EMBEDDINGS=none`. */
  readonly configuredModels: SectorModels | null;
  /** The live model where it embeds all sectors, else that of the first. */
  readonly live: StoredModel | null;
  /** The space of `live`. */
  readonly space: VectorSpace | null;
  /** The index of `live`. */
  readonly index: VectorIndex | null;
  /** The space of the first of `configuredModels`. */
  readonly configured: VectorSpace | null;
  /** The index of every model that ever made vectors here, by model number: an erasure must reach all of them. */
  readonly indexes: ReadonlyMap<number, VectorIndex>;
  close(): void;
}

export interface OpenTenantOptions {
  readonly role: OpenStoreOptions['role'];
  /** One for all sectors, or one a sector in the order of SECTORS. */
  readonly identity: SpaceIdentity | readonly SpaceIdentity[] | null;
  readonly now: number;
  /** What the vector indexes of this thread may hold; without it, each what it needs. */
  readonly indexMemory?: IndexMemory;
  /** How vectors are searched; 'auto' by default. */
  readonly vectorIndex?: VectorIndexChoice | undefined;
  /** How the word index is read; 'auto' by default. */
  readonly wordIndex?: WordIndexChoice | undefined;
  /** Told once where 'auto' finds a word index in a format that is not known. */
  readonly onUnknownWordFormat?: (() => void) | undefined;
  /** Open a file whose rebuild was broken off, to run it again. */
  readonly rebuilding?: boolean;
}

/** Opens a tenant's file, made and migrated if need be, and makes sure that its model has a number and an index. */
export function openTenant(path: string, options: OpenTenantOptions): OpenTenant {
  const { role, identity, now, indexMemory = createIndexMemory(), rebuilding = false } = options;
  const identities = identity === null ? null : [identity].flat();
  if (role === 'reader') prepare(path, identities, now);
  const store = openStore(path, { role, create: true });
  chooseWordIndex(store, options.wordIndex ?? 'auto', options.onUnknownWordFormat);
  try {
    if (role !== 'reader') retryWhileBusy(() => ensurePrepared(store, identities, now));
    if (!rebuilding && findInfo(store, REBUILDING) !== undefined) {
      throw new EngineError('unprocessable', 'a rebuild of its index was broken off: run `cairn rebuild-index` again');
    }
    const { vectorIndex: choice = 'auto' } = options;
    return describe(store, identities, (space) => openVectorIndex(store, space, { choice, indexMemory }));
  } catch (error) {
    store.close();
    throw error;
  }
}

/** A reader cannot write, so what it needs is made before on another connection. */
function prepare(path: string, identities: Identities, now: number): void {
  const store = openStore(path, { role: 'reader', create: true });
  try {
    if (isPrepared(store, identities)) return;
  } finally {
    store.close();
  }
  openTenant(path, { role: 'worker', identity: identities, now }).close();
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
  const known = new Map<number, VectorIndex>();
  const indexOf = (model: StoredModel): VectorIndex => {
    const { modelNo } = model;
    let index = known.get(modelNo);
    if (index === undefined) known.set(modelNo, (index = openIndex(spaceOf(model))));
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
      for (const index of known.values()) index.close();
      store.close();
    },
  };
}

/** What is asked for each of many memories in one transaction. Whoever changes it there reads it no more before the commit. */
function oncePerTransaction<T>(store: Store, read: () => T): () => T {
  let known: { readonly transactionNo: number; readonly value: T } | undefined;
  return () => {
    const { transactionNo } = store;
    if (transactionNo === undefined) return read();
    if (known?.transactionNo !== transactionNo) known = { transactionNo, value: read() };
    return known.value;
  };
}

export function spaceOf({ modelNo, dimensions, encoding }: StoredModel): VectorSpace {
  return { modelNo, dimensions, encoding };
}

/** Whether two embedders make vectors that can be compared. */
export function isSameSpace(one: SpaceIdentity, other: SpaceIdentity): boolean {
  return (
    one.provider === other.provider &&
    one.model === other.model &&
    one.dimensions === other.dimensions &&
    one.encoding === other.encoding
  );
}
