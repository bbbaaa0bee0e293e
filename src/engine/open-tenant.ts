import { createVec0Index, openVec0Index } from './adapters/vec0-index.ts';
import { EngineError } from './errors.ts';
import type { Embedder, VectorIndex } from './ports.ts';
import { findModelNumber, listModels, modelNumber } from './store/embeddings.ts';
import { ensureLiveModel, findLiveModel, RELINK_INDEX, type StoredModel } from './store/live-model.ts';
import { openStore, retryWhileBusy, type OpenStoreOptions, type Store } from './store/open-store.ts';
import { ensureStoreId, findInfo } from './store/store-info.ts';
import type { VectorSpace } from './store/vectors.ts';

/** Set while the indexes are made again: what a query found meanwhile would be a part passed off as the whole. */
export const REBUILDING = 'rebuilding';

/** Which vector space the settings ask for. */
export type SpaceIdentity = Pick<Embedder, 'provider' | 'model' | 'dimensions' | 'encoding'>;

/**
 * A tenant's file on one connection, with its vector spaces and indexes. Which of them is live is read from the file each time, so that
 * every process goes over to a new model at the same commit.
 */
export interface OpenTenant {
  readonly store: Store;
  readonly storeId: string;
  /** The model that queries and links use now; null when `OM_EMBEDDINGS=none`. */
  readonly live: StoredModel | null;
  /** The space of `live`. */
  readonly space: VectorSpace | null;
  /** The index of `live`. */
  readonly index: VectorIndex | null;
  /** While waypoints are measured anew, an index of the memories of the live space that have theirs already. `clear` makes it. */
  readonly relinked: VectorIndex | null;
  /** The space that the settings ask for: another than `space` while the model changes. null when `OM_EMBEDDINGS=none`. */
  readonly configured: VectorSpace | null;
  /** The index of every model that ever made vectors here, by model number: an erasure must reach all of them. */
  readonly indexes: ReadonlyMap<number, VectorIndex>;
  close(): void;
}

export interface OpenTenantOptions {
  readonly role: OpenStoreOptions['role'];
  readonly identity: SpaceIdentity | null;
  readonly now: number;
  /** Open a file whose rebuild was broken off, to run it again. */
  readonly rebuilding?: boolean;
}

/** Opens a tenant's file, made and migrated if need be, and makes sure that its model has a number and an index. */
export function openTenant(path: string, { role, identity, now, rebuilding = false }: OpenTenantOptions): OpenTenant {
  if (role === 'reader') prepare(path, identity, now);
  const store = openStore(path, { role, create: true });
  try {
    if (role !== 'reader') retryWhileBusy(() => ensurePrepared(store, identity, now));
    if (!rebuilding && findInfo(store, REBUILDING) !== undefined) {
      throw new EngineError('unprocessable', 'a rebuild of its index was broken off: run `cairn rebuild-index` again');
    }
    return describe(store, identity);
  } catch (error) {
    store.close();
    throw error;
  }
}

/** A reader cannot write, so what it needs is made before on another connection. */
function prepare(path: string, identity: SpaceIdentity | null, now: number): void {
  const store = openStore(path, { role: 'reader', create: true });
  try {
    if (isPrepared(store, identity)) return;
  } finally {
    store.close();
  }
  openTenant(path, { role: 'worker', identity, now }).close();
}

function isPrepared(store: Store, identity: SpaceIdentity | null): boolean {
  const named = store.prepare(`SELECT 1 FROM store_info WHERE key = 'store_id'`).get() !== undefined;
  if (!named || identity === null) return named;
  return findLiveModel(store) !== undefined && findModelNumber(store, identity) !== undefined;
}

function ensurePrepared(store: Store, identity: SpaceIdentity | null, now: number): void {
  if (isPrepared(store, identity)) return;
  store.write(() => {
    ensureStoreId(store);
    if (identity === null) return;
    const modelNo = modelNumber(store, identity, now);
    createVec0Index(store, { modelNo, dimensions: identity.dimensions });
    ensureLiveModel(store, modelNo);
  });
}

function describe(store: Store, identity: SpaceIdentity | null): OpenTenant {
  const known = new Map<number, VectorIndex>();
  const indexOf = ({ modelNo, dimensions }: Pick<VectorSpace, 'modelNo' | 'dimensions'>): VectorIndex => {
    let index = known.get(modelNo);
    if (index === undefined) known.set(modelNo, (index = openVec0Index(store, { modelNo, dimensions })));
    return index;
  };
  const findLive = () => (identity === null ? null : (findLiveModel(store) ?? null));
  return {
    store,
    storeId: store.read(() => ensureStoreId(store)),
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
    get relinked() {
      const live = findLive();
      return live && openVec0Index(store, { ...live, table: RELINK_INDEX });
    },
    get configured() {
      const modelNo = identity === null ? undefined : findModelNumber(store, identity);
      return identity === null || modelNo === undefined ? null : spaceOf({ ...identity, modelNo });
    },
    get indexes() {
      return new Map(listModels(store).map((model) => [model.modelNo, indexOf(model)]));
    },
    close: () => store.close(),
  };
}

function spaceOf({ modelNo, dimensions, encoding }: StoredModel): VectorSpace {
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
