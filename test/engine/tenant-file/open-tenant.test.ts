import { putLiveModels } from '../../../src/engine/store/live-model.ts';
import { modelNumber } from '../../../src/engine/store/embeddings.ts';
import path from 'node:path';
import { expect, test } from 'vitest';
import { createHashedEmbedder } from '../../../src/engine/adapters/hashed-embedder.ts';
import { isEngineError } from '../../../src/engine/errors.ts';
import { openTenant, REBUILDING } from '../../../src/engine/tenant-file/open-tenant.ts';
import { feedId } from '../../../src/engine/store/events.ts';
import { deleteInfo, putInfo } from '../../../src/engine/store/store-info.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const options = { identity: createHashedEmbedder({ dimensions: 256 }), now: 1 };

test('a reader finds a file made, migrated and with an index for its model', () => {
  using reader = disposable(openTenant(path.join(tempFolder(), 'new.sqlite'), { ...options, role: 'reader' }));
  expect(reader.tenant.space).toMatchObject({ dimensions: 256, encoding: 'int5' });
  expect(reader.tenant.index).not.toBeNull();
  expect(reader.tenant.storeId).toMatch(/^[0-9a-f]{8}$/);
});

test('each model that ever made vectors keeps its index, and none is taken for another', () => {
  const file = path.join(tempFolder(), 'two.sqlite');
  openTenant(file, { ...options, role: 'worker' }).close();
  const identity = createHashedEmbedder({ dimensions: 512 });
  using second = disposable(openTenant(file, { identity, now: 2, role: 'worker' }));
  expect([...second.tenant.indexes.keys()]).toEqual([1, 2]);
  expect(second.tenant.configured).toMatchObject({ modelNo: 2, dimensions: 512 });
  // Which one answers is said by the file, not by who opens it.
  expect(second.tenant.space).toMatchObject({ modelNo: 1, dimensions: 256 });
});

test('a file whose rebuild was broken off is served to nobody but the rebuild', () => {
  const file = path.join(tempFolder(), 'broken.sqlite');
  {
    using worker = disposable(openTenant(file, { ...options, role: 'worker' }));
    worker.tenant.store.write(() => putInfo(worker.tenant.store, REBUILDING, 'since then'));
  }
  for (const role of ['reader', 'acknowledger', 'worker'] as const) {
    expect(() => openTenant(file, { ...options, role })).toThrow(
      expect.toSatisfy((error: Error) => isEngineError(error, 'unprocessable') && /rebuild-index/.test(error.message)),
    );
  }
  {
    using rebuild = disposable(openTenant(file, { ...options, role: 'worker', rebuilding: true }));
    rebuild.tenant.store.write(() => deleteInfo(rebuild.tenant.store, REBUILDING));
  }
  openTenant(file, { ...options, role: 'reader' }).close();
});

test('a process that opens a new file beside another one keeps the feed of events that the other has begun', () => {
  const file = path.join(tempFolder(), 'feed.sqlite');
  let feed: string | undefined;
  openTenant(file, {
    ...{ ...options, role: 'acknowledger' },
    // Read once the file was looked at.
    get events() {
      using other = disposable(openTenant(file, { ...options, role: 'acknowledger', events: true }));
      feed = feedId(other.tenant.store);
      return true;
    },
  }).close();
  using after = disposable(openTenant(file, { ...options, role: 'reader' }));
  expect(feedId(after.tenant.store)).toBe(feed);
});

function disposable(tenant: ReturnType<typeof openTenant>) {
  return { tenant, [Symbol.dispose]: () => tenant.close() };
}

test('which models are live is read once a transaction, and anew in the next one', () => {
  const file = path.join(tempFolder(), 'models.sqlite');
  using reader = disposable(openTenant(file, { ...options, role: 'worker' }));
  using writer = disposable(openTenant(file, { ...options, role: 'worker' }));
  const { tenant } = reader;
  const { store } = writer.tenant;
  const before = tenant.live!.modelNo;
  const statements: string[] = [];
  const { prepare } = tenant.store;
  tenant.store.prepare = (sql) => {
    statements.push(sql);
    return prepare(sql);
  };
  const read = () => [tenant.live!.modelNo, tenant.liveModels![0].modelNo, tenant.index === null, tenant.indexes.size];
  tenant.store.read(() => {
    expect(read()).toEqual([before, before, false, 1]);
    store.write(() => putLiveModels(store, modelNumber(store, { ...options.identity, model: 'next' }, 2)));
    const asked = statements.length;
    expect(read()).toEqual([before, before, false, 1]);
    expect(statements.length).toBe(asked);
  });
  tenant.store.read(() => expect(read()).toEqual([before + 1, before + 1, false, 2]));
  expect(tenant.live!.modelNo).toBe(before + 1);
});
