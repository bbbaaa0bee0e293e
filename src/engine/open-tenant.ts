import { createVec0Index, openVec0Index } from './adapters/vec0-index.ts';
import { EngineError } from './errors.ts';
import type { Embedder, VectorIndex } from './ports.ts';
import { listModels, modelNumber } from './store/embeddings.ts';
import { openStore, retryWhileBusy, type OpenStoreOptions, type Store } from './store/open-store.ts';
import { ensureStoreId, findInfo } from './store/store-info.ts';
import type { VectorSpace } from './store/vectors.ts';

/** Set while the indexes are made again: what a query found meanwhile would be a part passed off as the whole. */
export const REBUILDING = 'rebuilding';

/** Which vector space the settings ask for. */
export type SpaceIdentity = Pick<Embedder, 'provider' | 'model' | 'dimensions' | 'encoding'>;

/** A tenant's file on one connection, with its vector space and indexes. */
export interface OpenTenant {
  readonly store: Store;
  readonly storeId: string;
  /** null when `OM_EMBEDDINGS=none`. */
  readonly space: VectorSpace | null;
  /** The index of `space`. */
  readonly index: VectorIndex | null;
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
  return named && (identity === null || listModels(store).some((model) => isSameSpace(model, identity)));
}

function ensurePrepared(store: Store, identity: SpaceIdentity | null, now: number): void {
  if (isPrepared(store, identity)) return;
  store.write(() => {
    ensureStoreId(store);
    if (identity === null) return;
    const modelNo = modelNumber(store, identity, now);
    createVec0Index(store, { modelNo, dimensions: identity.dimensions });
  });
}

function describe(store: Store, identity: SpaceIdentity | null): OpenTenant {
  const models = listModels(store);
  const indexes = new Map(
    models.map((model) => [
      model.modelNo,
      openVec0Index(store, { modelNo: model.modelNo, dimensions: model.dimensions }),
    ]),
  );
  const model = identity && models.find((candidate) => isSameSpace(candidate, identity));
  const space = model ? { modelNo: model.modelNo, dimensions: model.dimensions, encoding: model.encoding } : null;
  return {
    store,
    storeId: store.read(() => ensureStoreId(store)),
    space,
    index: (space && indexes.get(space.modelNo)) ?? null,
    indexes,
    close: () => store.close(),
  };
}

function isSameSpace(model: SpaceIdentity, identity: SpaceIdentity): boolean {
  return (
    model.provider === identity.provider &&
    model.model === identity.model &&
    model.dimensions === identity.dimensions &&
    model.encoding === identity.encoding
  );
}
