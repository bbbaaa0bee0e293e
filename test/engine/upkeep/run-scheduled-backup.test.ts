import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { backupDatabase, keyFileOf, restoreDatabase } from '../../../src/engine/admin/backup.ts';
import { unfinishedName } from '../../../src/engine/admin/unfinished-copy.ts';
import { importWrappedKey } from '../../../src/engine/control/key-file.ts';
import { openControlFile } from '../../../src/engine/control/control-file.ts';
import { putMark } from '../../../src/engine/control/moved-marks.ts';
import { DAY_MS } from '../../../src/engine/dynamics.ts';
import { databaseForm } from '../../../src/engine/store/database-form.ts';
import { openTenant } from '../../../src/engine/tenant-file/open-tenant.ts';
import type { MaintenanceContext } from '../../../src/engine/upkeep/maintenance-context.ts';
import { runDueSchedules } from '../../../src/engine/upkeep/schedules.ts';
import { openTestEngine, START, type TestEngine } from '../../support/engine-fixture.ts';
import { newKey } from '../../support/sealed-folder.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const MINUTE_MS = 60_000;

interface BackedUpEngine extends TestEngine {
  readonly folder: string;
  /** Lists files of the folder of backups, by their paths in it. */
  list(under: string): string[];
}

async function open(settings: Readonly<Record<string, string>> = {}): Promise<BackedUpEngine> {
  const folder = path.join(tempFolder(), 'backups');
  const fixture = await openTestEngine({
    settings: {
      OM_EMBEDDINGS: 'none',
      OM_BACKUP_EVERY: '1d',
      OM_BACKUP_FOLDER: folder,
      OM_BACKUP_KEEP: '2',
      ...settings,
    },
  });
  const list = (under: string) => {
    const files = fs.existsSync(path.join(folder, under)) ? fs.readdirSync(path.join(folder, under)) : [];
    return files.map((name) => path.join(under, name)).sort();
  };
  return { ...fixture, folder, list };
}

/** The runs of the schedule that were counted, by how they ended. */
async function runsOf({ maintenance }: TestEngine): Promise<Record<string, number>> {
  const { values } = await maintenance.metrics.scheduleRuns.get();
  const own = values.filter(({ labels }) => labels.schedule === 'backup');
  return Object.fromEntries(own.map(({ labels, value }) => [String(labels.outcome), value]));
}

const contentsOf = (fixture: TestEngine) => fixture.all('SELECT content FROM memories ORDER BY seq');

/** What a backup holds after it was restored elsewhere. */
async function restored(backup: string, settings: Readonly<Record<string, string>> = {}): Promise<unknown[]> {
  const to = path.join(tempFolder(), 'cairn.sqlite');
  const key = fs.existsSync(keyFileOf(backup)) ? fs.readFileSync(keyFileOf(backup), 'utf8') : null;
  const fromKey = key === null ? null : importWrappedKey(Buffer.from(settings.OM_ENCRYPTION_KEY!, 'hex'), key);
  await restoreDatabase({ from: backup, fromKey, to, now: START });
  await using fixture = await openTestEngine({ file: to });
  return contentsOf(fixture);
}

describe('scheduled backups', () => {
  test('are off by default', async () => {
    await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
    await fixture.add({ content: 'kept' });
    expect(await runDueSchedules(fixture.maintenance)).not.toContain('backup');
  });

  test('hold what was stored, one a period and no more than are kept, with the control database', async () => {
    await using fixture = await open();
    for (const day of [5, 6, 7]) {
      await fixture.add({ content: `said on day ${day}` });
      expect(await runDueSchedules(fixture.maintenance)).toContain('backup');
      expect(await runDueSchedules(fixture.maintenance)).not.toContain('backup');
      fixture.clock.advance(DAY_MS);
    }
    const names = ['20260106T000000000Z.sqlite', '20260107T000000000Z.sqlite'];
    expect(fixture.list('tenants/default')).toEqual(names.map((name) => `tenants/default/${name}`));
    expect(fixture.list('control')).toEqual(names.map((name) => `control/${name}`));
    const latest = path.join(fixture.folder, fixture.list('tenants/default')[1]!);
    expect(await restored(latest)).toEqual(contentsOf(fixture));
    if (process.platform !== 'win32') expect(fs.statSync(latest).mode & 0o777).toBe(0o600);
    expect(await runsOf(fixture)).toEqual({ ok: 3, failed: 0 });
  });

  test('one that fails removes nothing, is counted, and is tried again after ever longer pauses', async () => {
    await using fixture = await open({ OM_BACKUP_KEEP: '1' });
    await fixture.add({ content: 'kept' });
    await runDueSchedules(fixture.maintenance);
    const before = fixture.list('tenants/default');
    fixture.clock.advance(DAY_MS);
    const own = path.join(fixture.folder, 'tenants/default');
    fs.renameSync(own, `${own}.away`);
    fs.writeFileSync(own, 'in the way');
    const errors: unknown[] = [];
    const logger = { ...fixture.maintenance.logger, error: (fields: object) => void errors.push(fields) };
    const context = { ...fixture.maintenance, logger };

    await runDueSchedules(context);
    expect(errors).toMatchObject([{ schedule: 'backup' }]);
    for (const minutes of [1, 2, 4]) {
      fixture.clock.advance(minutes * MINUTE_MS - 1);
      await runDueSchedules(context);
      fixture.clock.advance(1);
      await runDueSchedules(context);
    }
    expect(errors).toHaveLength(4);
    expect(await runsOf(fixture)).toEqual({ ok: 1, failed: 4 });

    fs.rmSync(own);
    fs.renameSync(`${own}.away`, own);
    expect(fixture.list('tenants/default')).toEqual(before);
    fixture.clock.advance(8 * MINUTE_MS);
    expect(await runDueSchedules(context)).toContain('backup');
    expect(fixture.list('tenants/default')).toEqual(['tenants/default/20260106T001500000Z.sqlite']);
    // A success forgets the failures.
    fixture.clock.advance(DAY_MS);
    expect(await runDueSchedules(context)).toContain('backup');
  });

  test('a damaged file ends no good backup', async () => {
    await using fixture = await open({ OM_BACKUP_KEEP: '1' });
    for (let n = 0; n < 40; n++) await fixture.add({ content: `${n} ${'filling '.repeat(200)}` });
    await runDueSchedules(fixture.maintenance);
    const before = fixture.list('tenants/default');
    fixture.clock.advance(DAY_MS);
    fixture.store.db.pragma('wal_checkpoint(TRUNCATE)');
    const handle = fs.openSync(fixture.file, 'r+');
    const pages = Math.floor(fs.fstatSync(handle).size / 4096);
    for (let page = pages - 12; page < pages - 1; page++)
      fs.writeSync(handle, Buffer.alloc(4096, 7), 0, 4096, page * 4096);
    fs.closeSync(handle);
    expect(await runDueSchedules(fixture.maintenance)).not.toContain('backup');
    expect(fixture.list('tenants/default')).toEqual(before);
    expect(fixture.list('.')).toEqual(['control', 'tenants']);
  });

  test('the latest is kept although the clock was set back', async () => {
    await using fixture = await open({ OM_BACKUP_KEEP: '1' });
    await fixture.add({ content: 'kept' });
    fixture.clock.advance(400 * DAY_MS);
    await runDueSchedules(fixture.maintenance);
    fixture.clock.advance(-400 * DAY_MS);
    expect(await runDueSchedules(fixture.maintenance)).toContain('backup');
    expect(fixture.list('tenants/default')).toEqual(['tenants/default/20260105T000000000Z.sqlite']);
  });

  test('only one process makes one, and others go on writing', async () => {
    await using fixture = await open();
    await fixture.add({ content: 'kept' });
    const tenant = openTenant(fixture.file, { role: 'worker', identity: null, now: START });
    const other: MaintenanceContext = { ...fixture.maintenance, open: () => tenant };
    const both = Promise.all([runDueSchedules(fixture.maintenance), runDueSchedules(other)]);
    for (let n = 0; n < 20; n++) await fixture.add({ content: `meanwhile ${n}` });
    const ran = (await both).flat();
    tenant.close();
    expect(ran.filter((name) => name === 'backup')).toHaveLength(1);
    expect(fixture.list('tenants/default')).toHaveLength(1);
  });

  test('a stop breaks one off and leaves no name, and the next clears up', async () => {
    await using fixture = await open();
    await fixture.add({ content: 'kept' });
    const stop = new AbortController();
    const stopping = runDueSchedules({
      ...fixture.maintenance,
      signal: stop.signal,
      open() {
        // The last time that the file is asked for before the copy.
        if (fixture.get('SELECT count(*) FROM store_info WHERE key = ?', 'claim_backup') === 1) stop.abort();
        return fixture.maintenance.open();
      },
    });
    expect(await stopping).not.toContain('backup');
    expect(fixture.list('tenants/default')).toEqual([]);
    fs.mkdirSync(path.join(fixture.folder, 'tenants/default'), { recursive: true });
    const [left, running] = [
      'tenants/default/20260104T000000000Z.sqlite.0a1b.partial',
      'control/x.sqlite.0a1b.partial',
    ];
    fs.mkdirSync(path.join(fixture.folder, 'control'), { recursive: true });
    writeAt(path.join(fixture.folder, left), START - DAY_MS);
    writeAt(path.join(fixture.folder, running), START - 60 * MINUTE_MS);
    expect(await runDueSchedules(fixture.maintenance)).toContain('backup');
    expect(fixture.list('tenants/default')).toHaveLength(1);
    // Another process may be making that one.
    expect(fixture.list('control')).toContain(running);
    expect(await runsOf(fixture)).toEqual({ ok: 1, failed: 0 });
  });

  test('what a process left that has ended is removed by the next, however new, and what a running one writes stays', async () => {
    await using fixture = await open();
    await fixture.add({ content: 'kept' });
    const folder = path.join(fixture.folder, 'tenants/default');
    fs.mkdirSync(folder, { recursive: true });
    const to = path.join(folder, '20260104T000000000Z.sqlite');
    const module = path.resolve('src/engine/admin/unfinished-copy.ts');
    const print = '({ unfinishedName }) => console.log(unfinishedName(process.argv[1]))';
    const script = `import(${JSON.stringify(module)}).then(${print})`;
    const ofEnded = execFileSync(process.execPath, ['-e', script, to], { encoding: 'utf8' }).trim();
    const ofRunning = unfinishedName(to);
    const elsewhere = ofEnded.replace(/[0-9a-f]{12}(?=-\d+\.partial)/, '0'.repeat(12));
    for (const file of [ofEnded, `${ofEnded}-wal`, ofRunning, elsewhere]) fs.writeFileSync(file, 'x');
    expect(await runDueSchedules(fixture.maintenance)).toContain('backup');
    const left = fs.readdirSync(folder).filter((name) => name.includes('.partial'));
    expect(left.sort()).toEqual([ofRunning, elsewhere].map((file) => path.basename(file)).sort());
  });

  test('those of a tenant that is no more, or was moved away, are removed when they are older than the kept ones would be', async () => {
    await using fixture = await open();
    await fixture.add({ content: 'kept' });
    fixture.engine.control.createTenant('away');
    const control = openControlFile(fixture.maintenance.config.paths.control);
    control.write(() => putMark(control, 'away', { to: 'postgres://elsewhere/', at: START }));
    control.close();
    const folders = ['gone', 'away'].map((tenant) => path.join(fixture.folder, 'tenants', tenant));
    for (const folder of folders) {
      fs.mkdirSync(folder, { recursive: true });
      await backupDatabase({ from: fixture.file, to: path.join(folder, '20260105T000000000Z.sqlite') });
      writeAt(path.join(folder, '20260105T000000000Z.sqlite.0a1b.partial'), START);
    }
    for (const kept of [true, true, true, false]) {
      await runDueSchedules(fixture.maintenance);
      expect(folders.map((folder) => fs.existsSync(folder))).toEqual([kept, kept]);
      fixture.clock.advance(DAY_MS);
    }
    expect(fixture.list('tenants')).toEqual(['tenants/default']);
  });

  test('of sealed files are sealed, with the wrapped key beside them', async () => {
    const settings = { OM_ENCRYPTION_KEY: newKey() };
    await using fixture = await open({ ...settings, OM_BACKUP_KEEP: '1' });
    for (let day = 0; day < 2; day++) {
      await fixture.add({ content: `sealed on day ${day}` });
      expect(await runDueSchedules(fixture.maintenance)).toContain('backup');
      fixture.clock.advance(DAY_MS);
    }
    const [backup, key] = fixture.list('tenants/default').map((name) => path.join(fixture.folder, name));
    expect(key).toBe(keyFileOf(backup!));
    const control = path.join(fixture.folder, fixture.list('control')[0]!);
    expect([backup!, control].map((file) => databaseForm(file))).toEqual(['sealed', 'sealed']);
    expect(await restored(backup!, settings)).toEqual(contentsOf(fixture));
  });
});

/** Writes half a copy that was last written to at `time` (Unix ms). */
function writeAt(file: string, time: number): void {
  fs.writeFileSync(file, 'half');
  fs.utimesSync(file, time / 1_000, time / 1_000);
}
