/** Tenants that move from a data folder to PostgreSQL and back, and what keeps them from moving. */
import fs from 'node:fs';
import path from 'node:path';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { readConfig } from '../../src/engine/config.ts';
import type { ControlDatabase } from '../../src/engine/control/control-database.ts';
import { openControlFile } from '../../src/engine/control/control-file.ts';
import { CONTROL_NOT_COPIED, CONTROL_TABLES } from '../../src/engine/control/moved-control.ts';
import { openControlDatabase } from '../../src/engine/control/open-control-database.ts';
import { systemClock } from '../../src/engine/ports.ts';
import { openStore } from '../../src/engine/store/open-store.ts';
import { putText } from '../../src/engine/store/word-index/memory-text.ts';
import { movingName, openMovedTenants } from '../../src/engine/store/postgres/moved-tenant.ts';
import { MOVED_TABLES, NOT_COPIED, NUMBERS } from '../../src/engine/store/postgres/moved-tables.ts';
import { createManualClock, openTestEngine } from '../support/engine-fixture.ts';
import { dumpAll, fullFolder, NOW, run, spawnMove } from '../support/moved-folder.ts';
import { startPostgres, type PostgresServer } from '../support/postgres.ts';
import { tempFolder } from '../support/temp-folder.ts';

const server = (await startPostgres()) as PostgresServer;

describe.skipIf(server === undefined)('cairn move', () => {
  afterAll(() => server?.stop());

  test('knows every table of a tenant and of the control database, in both schemas', async () => {
    const database = await server.createSchema();
    const folder = tempFolder();
    const tenants = openMovedTenants(database);
    const ofTenants = (await server.read(
      database,
      `SELECT DISTINCT table_name::text AS name FROM information_schema.columns c JOIN information_schema.tables t
         USING (table_schema, table_name)
       WHERE table_schema = current_schema() AND column_name = 'tenant' AND table_type = 'BASE TABLE'
         AND table_name <> 'tenants'`,
    )) as { name: string }[];
    expect(ofTenants.map(({ name }) => name).sort()).toEqual(
      [...MOVED_TABLES, NUMBERS, ...Object.keys(NOT_COPIED)].sort(),
    );
    tenants.close();
    const store = openStore(path.join(folder, 'cairn.sqlite'), { role: 'worker', create: true });
    expect(tablesOf(store.db)).toEqual([...MOVED_TABLES].sort());
    store.close();
    const control = openControlFile(path.join(folder, 'cairn.control.sqlite'));
    expect(tablesOf(control.db)).toEqual([...Object.keys(CONTROL_TABLES), ...Object.keys(CONTROL_NOT_COPIED)].sort());
    control.close();
  });

  test('is written in an order in which no trigger on an insert finds anything to do', async () => {
    const database = await server.createSchema();
    openMovedTenants(database).close();
    const triggers = (await server.read(
      database,
      `SELECT DISTINCT event_object_table::text AS name FROM information_schema.triggers
       WHERE trigger_schema = current_schema() AND event_manipulation = 'INSERT'`,
    )) as { name: string }[];
    // Another one needs a place in the order of MOVED_TABLES, as these have.
    expect(triggers.map(({ name }) => name).sort()).toEqual([
      'documents',
      'edges',
      'recalls',
      'standing_due',
      'tenants',
    ]);
    const isBefore = (one: string, other: string) =>
      expect(MOVED_TABLES.indexOf(one), `${one} before ${other}`).toBeLessThan(MOVED_TABLES.indexOf(other));
    isBefore('documents', 'event_feed');
    isBefore('edges', 'standing_queries');
    isBefore('recalls', 'recall_total');
    isBefore('standing_due', 'consolidations');
  });

  test('takes two tenants there and back, every row and every answer the same', async () => {
    const { file, secret, ids } = await fullFolder();
    const database = await server.createSchema();
    const answers = await answersAt({ file });
    const before = dumpAll(file);
    expect(answers.flat().length).toBeGreaterThan(20);
    const there = await run({ file, database, direction: 'into database' });
    expect(there).toMatchObject({ tenants: ['default', 'acme'], isResumed: false });
    expect(there.questions).toBeGreaterThan(10);
    expect(dumpAll(file)).toEqual(before);
    const other = path.join(tempFolder(), 'cairn.sqlite');
    expect(await answersAt({ file: other, database })).toEqual(answers);
    // The source is closed, and says where the data is.
    await expect(openTestEngine({ file })).rejects.toThrow(/was moved to postgres:\/\/.* and is closed here/);
    const back = await run({ file: other, database, direction: 'into folder' });
    expect(back).toMatchObject({ tenants: ['default', 'acme'], memories: there.memories });
    expect(dumpAll(other)).toEqual(before);
    expect(await answersAt({ file: other })).toEqual(answers);
    await expect(
      openTestEngine({ file: path.join(tempFolder(), 'c.sqlite'), settings: { OM_DATABASE_URL: database } }),
    ).rejects.toThrow(/was moved to .*cairn\.sqlite/);
    const control = openControlDatabase(readConfig({ OM_DB_PATH: other }), systemClock);
    expect(control.authenticate(secret)).toMatchObject({ tenantId: 'acme', role: 'write' });
    expect(control.getSetting('acme', 'retrieval')).toBe('{"k":3}');
    expect(control.limits.own({ tenantId: 'acme' })).toMatchObject({ max_memories: 500 });
    control.close();
    // Numbers go on behind those that were copied.
    await using fixture = await openTestEngine({ file: other, clock: createManualClock(NOW) });
    const added = await fixture.add({ content: 'A new one.', userId: 'ana' });
    const last = (before.default!.sqlite_sequence as [string, number][]).find(([name]) => name === 'memories')!;
    expect(added.memoryNo).toBe(last[1] + 1);
    expect(ids).not.toContain(added.id);
  });

  test('writes the words of files anew that an earlier version has indexed otherwise', async () => {
    const { file } = await fullFolder();
    const before = dumpAll(file);
    const store = openStore(file, { role: 'worker' });
    const memoryNo = store.db.prepare('SELECT max(seq) FROM memories').pluck().get() as number;
    const content = 'frobnicate '.repeat(3);
    store.write(() =>
      putText(store, { memoryNo, content, title: '', gist: '', entities: [], tags: [], files: [], context: '' }),
    );
    store.close();
    expect(dumpAll(file).default!.memory_text_docsize).not.toEqual(before.default!.memory_text_docsize);
    const database = await server.createSchema();
    const steps: string[] = [];
    const showProgress = (step: string) => ({ update: () => void steps.push(step), stop() {} });
    expect((await run({ file, database, direction: 'into database', showProgress })).questions).toBeGreaterThan(10);
    expect(steps).toContain('Words of default');
    expect(steps).not.toContain('Words of acme');
    expect(dumpAll(file).default!.memory_text_docsize).toEqual(before.default!.memory_text_docsize);
  });

  test('goes on in PostgreSQL: documents that wait are read, and numbers follow', async () => {
    const { file } = await fullFolder();
    const database = await server.createSchema();
    const last = (dumpAll(file).default!.sqlite_sequence as [string, number][]).find(([name]) => name === 'memories')!;
    await run({ file, database, direction: 'into database' });
    const clock = createManualClock(NOW);
    await using fixture = await openTestEngine({
      file: path.join(tempFolder(), 'cairn.sqlite'),
      clock,
      settings: { OM_DATABASE_URL: database },
    });
    expect((await fixture.add({ content: 'A new one.', userId: 'ana' })).memoryNo).toBe(last[1] + 1);
    await fixture.drain();
    const { items: documents } = await fixture.tenant.listDocuments({ states: ['ready'] }, { limit: 20, offset: 0 });
    expect(documents.map(({ title }) => title)).toContain('Waiting');
  });

  test('one tenant alone, and then another one, into the same database', async () => {
    const { file, secret } = await fullFolder();
    const database = await server.createSchema();
    const one = await run({ file, database, direction: 'into database', tenant: 'acme' });
    expect(one).toMatchObject({ tenants: ['acme'] });
    await using rest = await openTestEngine({ file, clock: createManualClock(NOW) });
    await expect(rest.engine.tenant('acme')).rejects.toThrow(/this tenant was moved to postgres/);
    expect(rest.engine.control.listTenants().map(({ id }) => id)).toEqual(['default']);
    const other = path.join(tempFolder(), 'cairn.sqlite');
    {
      await using there = await openTestEngine({ file: other, settings: { OM_DATABASE_URL: database } });
      expect((await (await there.engine.tenant('acme')).stats()).memories).toBe(one.memories);
      expect(there.engine.control.authenticate(secret)).toMatchObject({ tenantId: 'acme' });
    }
    const second = await fullFolder();
    await expect(run({ file: second.file, database, direction: 'into database', tenant: 'acme' })).rejects.toThrow(
      /already holds tenant acme/,
    );
    await expect(run({ file: second.file, database, direction: 'into database' })).rejects.toThrow(/already holds/);
    expect((await run({ file: other, database, direction: 'into folder', tenant: 'acme' })).memories).toBe(
      one.memories,
    );
    await expect(run({ file: other, database, direction: 'into folder', tenant: 'acme' })).rejects.toThrow(
      /tenant acme was moved to/,
    );
  });

  test('one tenant alone, and back to where it was: it is open there again', async () => {
    const { file } = await fullFolder();
    const there = { OM_DB_PATH: path.join(tempFolder(), 'cairn.sqlite'), OM_DATABASE_URL: await server.createSchema() };
    const go = (direction: 'into database' | 'into folder') =>
      run({ file, database: there.OM_DATABASE_URL, direction, tenant: 'acme' });
    const erase = (control: ControlDatabase) => control.eraseTenant('acme');
    const isOpen = ({ findMoved, listTenants }: ControlDatabase) =>
      findMoved('acme') === undefined && listTenants().some(({ id }) => id === 'acme');
    await go('into database');
    await expect(go('into folder')).rejects.toThrow(/already holds tenant acme: give another path, or move it away/);
    fs.renameSync(path.join(file.replace('.sqlite', '.tenants'), 'acme.sqlite'), path.join(tempFolder(), 'away'));
    await go('into folder');
    expect(withControl({ OM_DB_PATH: file }, isOpen)).toBe(true);
    await expect(go('into database')).rejects.toThrow(/already holds tenant acme: erase it there first/);
    withControl(there, erase);
    await go('into database');
    expect(withControl(there, isOpen)).toBe(true);
    // A new tenant of that name is no tenant that was moved.
    withControl({ OM_DB_PATH: file }, erase);
    withControl({ OM_DB_PATH: file }, (control) => control.createTenant('acme'));
    expect(withControl({ OM_DB_PATH: file }, isOpen)).toBe(true);
  });

  test('a key that reaches several tenants is used and revoked while only some of these are moved', async () => {
    const file = path.join(tempFolder(), 'cairn.sqlite');
    const database = await server.createSchema();
    const here = { OM_DB_PATH: file };
    const there = { OM_DB_PATH: path.join(tempFolder(), 'cairn.sqlite'), OM_DATABASE_URL: database };
    const keyIds = withControl(here, (control) => {
      const [tenantId, ...furtherTenantIds] = ['one', 'two', 'three', 'four'] as const;
      for (const id of [tenantId, ...furtherTenantIds]) control.createTenant(id);
      return ['shared', 'unused'].map(
        (label) => control.createKey({ tenantId, furtherTenantIds, role: 'read', label }).record.id,
      );
    });
    const use = (settings: Record<string, string>, at: number) =>
      withControl(settings, (control) => control.storeKeyUses([[keyIds[0]!, at]]));
    const into = (direction: 'into database' | 'into folder', to: string, tenant: string) =>
      run({ file: to, database, direction, tenant });
    const keysAt = (settings: Record<string, string>) =>
      withControl(settings, ({ findKey }) => keyIds.map((id) => findKey(id)));
    await into('into database', file, 'one');
    use(there, NOW + 1);
    await into('into database', file, 'two');
    expect(keysAt(there)).toMatchObject([{ lastUsedAt: NOW + 1, revokedAt: null }, { lastUsedAt: null }]);
    use(here, NOW + 2);
    await into('into database', file, 'three');
    const tenantIds = ['one', 'two', 'three'];
    expect(keysAt(there)).toMatchObject([{ lastUsedAt: NOW + 2, tenantIds }, { lastUsedAt: null }]);
    // The same between two moves into a folder.
    const back = { OM_DB_PATH: path.join(tempFolder(), 'cairn.sqlite') };
    await into('into folder', back.OM_DB_PATH, 'one');
    use(there, NOW + 3);
    withControl(back, (control) => control.revokeKey(keyIds[1]!));
    await into('into folder', back.OM_DB_PATH, 'two');
    const revokedAt = expect.any(Number) as number;
    expect(keysAt(back)).toMatchObject([{ lastUsedAt: NOW + 3, revokedAt: null }, { revokedAt }]);
    withControl(here, (control) => control.revokeKey(keyIds[0]!));
    await into('into database', file, 'four');
    expect(keysAt(there)).toMatchObject([{ revokedAt }, { revokedAt: null }]);
  });

  test('refuses, before anything is written, what cannot move or is in use', async () => {
    const { file } = await fullFolder();
    const database = await server.createSchema();
    const into = { file, database, direction: 'into database' } as const;
    await expect(run({ ...into, tenant: 'nobody' })).rejects.toThrow(/no tenant "nobody"/);
    await expect(run({ ...into, tenant: 'default' })).rejects.toThrow(/with all others only/);
    await expect(run({ ...into, file: path.join(tempFolder(), 'none.sqlite') })).rejects.toThrow(/no data folder/);
    const key = '0123456789abcdef'.repeat(4);
    await expect(run({ ...into, settings: { OM_ENCRYPTION_KEY: key } })).rejects.toThrow(/cairn decrypt/);
    const control = openControlDatabase(readConfig({ OM_DB_PATH: file }), systemClock);
    control.limits.change({ tenantId: 'acme' }, { max_mb: 5 });
    await expect(run(into)).rejects.toThrow(/limit max_mb.*acme/);
    control.limits.change({ tenantId: 'acme' }, { max_mb: null });
    control.close();
    const store = openStore(file, { role: 'worker' });
    const set = (tags: string) =>
      store.prepare('UPDATE memories SET tags = ? WHERE seq = (SELECT max(seq) FROM memories)').run(tags);
    const tags = store
      .prepare('SELECT tags FROM memories WHERE seq = (SELECT max(seq) FROM memories)')
      .pluck()
      .get() as string;
    set(JSON.stringify(['a\0b']));
    await expect(run(into)).rejects.toThrow(/1 memories have U\+0000/);
    set(tags);
    store.close();
    expect(await server.read(database, 'SELECT id FROM tenants')).toEqual([]);
    {
      const used = path.join(tempFolder(), 'cairn.sqlite');
      await using service = await openTestEngine({ file: used, settings: { OM_DATABASE_URL: database } });
      expect((await service.tenant.stats()).memories).toBe(0);
      const other = tempFolder();
      const moving = spawnMove(['--to', path.join(other, 'cairn.sqlite')], { OM_DATABASE_URL: database });
      expect(await moving.ended).toMatchObject({ code: 1, error: expect.stringMatching(/other Cairn processes use/) });
      expect(fs.readdirSync(other).filter((name) => name.endsWith('.sqlite'))).toEqual([]);
    }
    await expect(run(into)).rejects.toThrow(/already holds tenant default/);
  });

  test('writes no rows of a copy that another process has deleted', async () => {
    const database = await server.createSchema();
    const [moving, other] = [openMovedTenants(database), openMovedTenants(database)];
    onTestFinished(() => [moving, other].forEach((tenants) => tenants.close()));
    const name = movingName('source', 'acme');
    moving.make(name);
    const copy = moving.rowsOf(name);
    const columns = moving.columns.get('store_info')!;
    const write = (key: string) => copy.write('store_info', columns, [columns.map(() => key)]);
    const stored = () => server.read(database, `SELECT key FROM store_info WHERE key LIKE 'copied%'`);
    copy.begin(['store_info']);
    write('copied');
    expect(await stored()).toEqual([{ key: 'copied' }]);
    other.drop(name);
    expect(() => write('copied late')).toThrow(/has removed the copy/);
    expect(await stored()).toEqual([]);
  });

  test('keeps the source open with --keep-source', async () => {
    const { file } = await fullFolder();
    const database = await server.createSchema();
    await run({ file, database, direction: 'into database', keepsSource: true });
    await using fixture = await openTestEngine({ file, clock: createManualClock(NOW) });
    expect((await fixture.tenant.stats()).memories).toBeGreaterThan(5);
  });
});

/** Opens a control database, does something with it, and closes it. */
function withControl<T>(settings: Readonly<Record<string, string>>, work: (control: ControlDatabase) => T): T {
  const control = openControlDatabase(readConfig(settings), systemClock);
  try {
    return work(control);
  } finally {
    control.close();
  }
}

function tablesOf(db: { prepare(sql: string): { pluck(): { all(): unknown[] } } }): string[] {
  return db
    .prepare(
      `SELECT name FROM sqlite_schema WHERE type = 'table' AND NOT name GLOB 'sqlite_*' AND NOT name GLOB 'memory_text*'
       ORDER BY name`,
    )
    .pluck()
    .all() as string[];
}

const QUESTIONS = ['Where does Anna live?', 'lighthouse ships', 'How is a rollback done?', 'ferry to Altona', 'zero'];

/** Answers of both tenants, with their scores. */
async function answersAt({ file, database }: { file: string; database?: string }): Promise<unknown[][]> {
  const settings = database === undefined ? {} : { OM_DATABASE_URL: database };
  await using fixture = await openTestEngine({ file, settings, clock: createManualClock(NOW) });
  const answers: unknown[][] = [];
  for (const tenant of [fixture.tenant, await fixture.engine.tenant('acme')]) {
    for (const query of QUESTIONS) {
      const asked = { query, k: 10, filter: {}, minScore: 0, reinforce: false, isLogged: false };
      const { hits } = await tenant.query(asked);
      answers.push(hits.map(({ memory, score }) => [memory.id, memory.content, score]));
    }
    const { items } = await tenant.listRecalls({ limit: 50 });
    answers.push(items.map(({ recallId }) => recallId));
  }
  return answers;
}
