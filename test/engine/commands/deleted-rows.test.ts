/** Texts that are in no word index leave the file and its log, too, once they were deleted. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import type { Tenant } from '../../../src/engine/engine.ts';
import { cleanAfterErase } from '../../../src/engine/upkeep/clean-after-erase.ts';
import { openTestEngine } from '../../support/engine-fixture.ts';

const TEXT = 'Zyxwquokka';
const PLACE = { userId: 'ana', sessionId: 's1' };
const STANDING = { query: TEXT, userId: 'ana', filter: {}, given: {} };
const set = (query: string) => ({
  name: 'home',
  guard: false,
  items: [{ query, userId: 'bob', expected: ['a ferry'] }],
});

/** By what is deleted: stores the text, and returns the function that deletes it. */
const DELETIONS: Readonly<Record<string, (tenant: Tenant) => Promise<() => Promise<unknown>>>> = {
  async 'the last item of a log'(tenant) {
    await tenant.changeLog(PLACE, { items: [TEXT] });
    return () => tenant.popLog(PLACE);
  },
  async 'an item of a log that is replaced'(tenant) {
    await tenant.changeLog(PLACE, { items: [TEXT] });
    return () => tenant.changeLog(PLACE, { items: ['else'], replaces: { from: 0 } });
  },
  async 'a standing query'(tenant) {
    const { id } = await tenant.createStandingQuery(STANDING);
    return () => tenant.deleteStandingQuery(id);
  },
  async 'the standing queries of a user'(tenant) {
    await tenant.createStandingQuery(STANDING);
    return () => tenant.deleteMemories({ userIds: ['ana'] });
  },
  async 'a webhook'(tenant) {
    const { id } = await tenant.createWebhook({ url: `http://127.0.0.1:9/${TEXT}`, kinds: [] });
    return () => tenant.deleteWebhook(id);
  },
  async 'an evaluation set'(tenant) {
    await tenant.putEval(set(TEXT));
    return () => tenant.deleteEval('home');
  },
  async 'the items of an evaluation set that is replaced'(tenant) {
    await tenant.putEval(set(TEXT));
    return () => tenant.putEval(set('else'));
  },
};

/** Names of the files of a tenant's folder that hold the text. */
const filesWithText = (file: string) =>
  fs
    .readdirSync(path.dirname(file), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && fs.readFileSync(path.join(entry.parentPath, entry.name)).includes(TEXT))
    .map(({ name }) => name);

test.each(Object.entries(DELETIONS))('%s', async (_, store) => {
  await using fixture = await openTestEngine({ settings: { OM_WEBHOOK_ALLOW: '127.0.0.1' } });
  const { tenant, file, maintenance } = fixture;
  const remove = await store(tenant);
  fixture.store.db.pragma('wal_checkpoint(TRUNCATE)');
  expect(filesWithText(file)).toEqual([path.basename(file)]);
  await remove();
  expect(await cleanAfterErase(maintenance)).toBe(true);
  expect(filesWithText(file)).toEqual([]);
  expect(await cleanAfterErase(maintenance)).toBe(false);
});

test('a change of a log that removes nothing leaves nothing to be cleaned', async () => {
  await using fixture = await openTestEngine();
  await fixture.tenant.changeLog(PLACE, { items: [TEXT] });
  await fixture.tenant.popLog({ ...PLACE, sessionId: 's2' });
  expect(await cleanAfterErase(fixture.maintenance)).toBe(false);
});
